import { createGateway } from 'petql';
import type { Gateway } from 'petql';

let gateway: Gateway | undefined;

/** Next.js evaluates this module for the route and for the page, while it builds too. */
export function petql(): Gateway {
  return (gateway ??= createGateway({
    petApiUrl: process.env['PET_API_URL'] ?? '',
    petApiKey: process.env['PET_API_KEY'],
    stateFile: process.env['STATE_FILE'],
    corsOrigins: ['https://app.example'],
    log: console,
    logLevel: 'info',
  }));
}
