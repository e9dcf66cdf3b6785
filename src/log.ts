import { pino } from 'pino';
import type { Config } from './config.ts';

/** What petql needs of a logger. Those of pino and Fastify fit, and so does the console. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
  /** A line for each operation. A log without this gets none. */
  debug?(details: object, message: string): void;
}

/**
 * JSON lines on standard error, so that standard output stays for what a person reads.
 * Nothing that may hold an API key is ever logged: keys, headers and bodies stay with whoever handles them.
 */
export function createLog(level: Config['logLevel']): Log {
  return pino({ name: 'petql', level }, pino.destination({ dest: 2, sync: true }));
}

/** For whoever embeds petql and gives it no log. */
export const silentLog: Log = { info() {}, warn() {}, error() {} };
