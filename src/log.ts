import { pino } from 'pino';
import type { Logger } from 'pino';
import type { Config } from './config.ts';

export type Log = Logger;

/**
 * JSON lines on standard error, so that standard output stays for what a person reads.
 * Nothing that may hold an API key is ever logged: keys, headers and bodies stay with whoever handles them.
 */
export function createLog(level: Config['logLevel']): Log {
  return pino({ name: 'petql', level }, pino.destination({ dest: 2, sync: true }));
}
