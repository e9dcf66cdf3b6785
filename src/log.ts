import { pino } from 'pino';
import type { Config } from './config.ts';
import { createLogLines } from './log-lines.ts';

/** What petql needs of a logger. Those of pino and Fastify fit, and so does the console. */
export interface Log {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
  /** A line for each operation. A log without this gets none. */
  debug?(details: object, message: string): void;
}

/**
 * JSON lines on standard error, so that standard output stays for what a person reads. A line is out when the call that logs
 * it returns, unless nobody reads them: then lines are dropped, and the process goes on. For the whole process, once.
 * Nothing that may hold an API key is ever logged: keys, headers and bodies stay with whoever handles them.
 */
export function createLog(level: Config['logLevel']): Log {
  // Asked for here and not taken for 2: a pipe or a socket does not block any more once Node has made its stream of it.
  const { fd } = process.stderr;
  const lines = createLogLines(fd, (dropped) => {
    log.warn({ dropped }, 'log lines were dropped, since nobody read standard error or there was no room for them');
  });
  process.once('exit', () => lines.flushSync());
  const log = pino({ name: 'petql', level }, lines);
  return log;
}

/** For whoever embeds petql and gives it no log. */
export const silentLog: Log = { info() {}, warn() {}, error() {} };
