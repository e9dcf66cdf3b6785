import { Console } from 'node:console';
import { format } from 'node:util';
import { pino } from 'pino';
import { LOG_RETRY_MS } from './times.ts';

/** Each level includes those before it. */
export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What a line says beside its message: nothing under a name that a logger gives each line itself, or JSON would have it twice. */
type Details = Readonly<Record<string, unknown>> & {
  readonly [Name in 'hostname' | 'level' | 'msg' | 'name' | 'pid' | 'time']?: never;
};

/** A logger such as pino's, Fastify's or the console. No line holds an API key, a header or a body. */
export interface Log {
  readonly info: (details: Details, message: string) => void;
  readonly warn: (details: Details, message: string) => void;
  readonly error: (details: Details, message: string) => void;
  /** Gets a line for each operation. */
  readonly debug?: (details: Details, message: string) => void;
}

/** Max memory of lines that nobody reads. Further lines are dropped and counted. */
const MAX_WAITING_BYTES = 1_048_576;
const MAX_THINGS = 100;

/**
 * Returns a log of JSON lines on standard error, one per process. A line is written when the call that logs it returns. Where
 * nobody reads standard error, lines wait, and neither the process nor its end waits for them.
 */
export function createLog(level: LogLevel): Log {
  let dropped = 0;
  /** Set while standard error takes no lines. */
  let retry: NodeJS.Timeout | undefined;
  const destination = pino.destination({
    // The stream's own descriptor, since Node makes a pipe non-blocking when it opens the stream.
    dest: process.stderr.fd,
    sync: true,
    maxLength: MAX_WAITING_BYTES,
    // A full pipe is an error event at once, instead of a sleep of the whole process.
    retryEAGAIN: () => false,
  });
  const log = pino({ name: 'petql', level, formatters: { level: (label) => ({ level: label }) } }, destination);
  destination.on('drop', () => (dropped += 1));
  destination.on('error', () => (retry ??= setTimeout(writeWaiting, LOG_RETRY_MS).unref()));
  destination.on('drain', () => {
    const lines = dropped;
    dropped = 0;
    if (lines > 0) log.warn({ dropped: lines }, 'log lines were dropped: standard error was unread or had no room');
  });
  return log;

  function writeWaiting(): void {
    retry = undefined;
    destination.write('');
  }
}

/** Logs the texts that libraries and Node.js would write to standard error. */
export function takeWarnings(log: Log): void {
  const methods: Partial<Console> = {
    warn: (...words: unknown[]) => log.warn({}, format(...words)),
    error: (...words: unknown[]) => log.error({}, format(...words)),
  };
  Object.assign(console, methods);
  process.removeAllListeners('warning').on('warning', ({ name, message }) => log.warn({ warning: name }, message));
}

/** Warns of each thing once. Clients may choose the things, so it warns of the first 100 only. */
export class OnceLog {
  readonly #log: Log;
  readonly #logged = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** @param thing default: the message. */
  warn(details: Details, message: string, thing = message): void {
    if (this.#logged.has(thing) || this.#logged.size === MAX_THINGS) return;
    this.#logged.add(thing);
    this.#log.warn(details, message);
  }
}

/** The default of the option `log`. */
export const silentLog: Log = { info() {}, warn() {}, error() {} };

/** Gets the decisions for one API key. `debug?.(…)` builds no details where the log has no such level. */
export type KeyLog = Pick<Log, 'debug' | 'warn'>;

/** Returns a log whose lines name the key by its hash. */
export function keyLog(log: Log, hashOf: () => string): KeyLog {
  let key: string | undefined;
  const named = (details: object) => ({ key: (key ??= hashOf()), ...details });
  const { debug } = log;
  return {
    warn: (details, message) => log.warn(named(details), message),
    ...(debug && { debug: (details, message) => debug(named(details), message) }),
  };
}

/** Returns a log without the lines below the level. By default the console gets no info, and a logger decides by itself. */
export function withLevel(log: Log, level: LogLevel | undefined): Log {
  const max = LOG_LEVELS.indexOf(level ?? (log instanceof Console ? 'warn' : 'debug'));
  const method = (name: keyof Log) => (LOG_LEVELS.indexOf(name) <= max ? harmless(log, name) : silentLog.info);
  const hasDebug = log.debug && LOG_LEVELS.indexOf('debug') <= max && hasLevel(log) !== false;
  return {
    info: method('info'),
    warn: method('warn'),
    error: method('error'),
    ...(hasDebug && { debug: method('debug') }),
  };
}

/** Returns whether a logger writes lines of `debug`, which pino has as a method at every level. Undefined for other loggers. */
function hasLevel(log: Log & { readonly isLevelEnabled?: (level: string) => boolean }): boolean | undefined {
  return log.isLevelEnabled?.('debug');
}

/** Ignores errors of the program's logger, such as of a full disk, so that the operation succeeds. An async function has them later. */
function harmless(log: Log, name: keyof Log): Log['info'] {
  return (details, message) => {
    try {
      const logged = log[name]?.(details, message) as Partial<Promise<unknown>> | undefined;
      logged?.catch?.(() => {});
    } catch {
      // There is nowhere left to report it.
    }
  };
}
