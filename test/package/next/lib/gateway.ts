import { createGateway } from 'petql';
import type { Gateway } from 'petql';

const kept: { petql?: Gateway } & object = globalThis;
export const petql = () =>
  (kept.petql ??= createGateway({
    petApiUrl: process.env['PET_API_URL'] ?? '',
    petApiKey: process.env['PET_API_KEY'],
    stateFile: process.env['STATE_FILE'],
    redisUrl: process.env['REDIS_URL'],
    corsOrigins: ['https://app.example'],
    log: console,
    logLevel: 'info',
  }));
