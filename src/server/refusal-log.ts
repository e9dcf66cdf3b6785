import type { GraphQLError } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../common/clock.ts';
import type { Log } from '../common/log.ts';
import type { RequestContext } from '../caller/request-context.ts';
import { REFUSAL_LINES_MS, SAME_REFUSAL_MS } from '../common/times.ts';

const MAX_KEYS = 1_000;

/** Lines over all keys: anybody can make up keys. */
const MAX_REFUSAL_LINES = 10;

const MESSAGES: Readonly<Record<string, string>> = {
  FORBIDDEN: 'the pet API forbids calls of this key',
  RATE_LIMITED: 'operations of this key are refused',
};

/** Warns when operations of a key begin to be refused or forbidden: cached data, or patient clients, hide it elsewhere. */
export class RefusalLog {
  readonly #log: Log;
  readonly #clock: Pick<Clock, 'elapsed'>;
  /** When each key was refused last, by the code and the hash of the key. */
  readonly #refusedAtMs = new LRUCache<string, number>({ max: MAX_KEYS });
  /** When the last lines were written. */
  #writtenAtMs: readonly number[] = [];

  constructor(log: Log, clock: Pick<Clock, 'elapsed'>) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Records the error of an operation. A pause after a 429 has a warning of its own. */
  record(context: RequestContext, { message, extensions }: GraphQLError): void {
    const code = String(extensions['code']);
    const text = MESSAGES[code];
    const quota = context.latestKeyQuota;
    if (text === undefined || quota?.pausedUntil) return;

    const key = context.keyName;
    const id = `${code} ${key}`;
    const nowMs = this.#clock.elapsed();
    const sinceMs = nowMs - (this.#refusedAtMs.get(id) ?? -Infinity);
    this.#refusedAtMs.set(id, nowMs);
    if (sinceMs < SAME_REFUSAL_MS || !this.#hasRoom(nowMs)) return;

    const counts = quota?.windows.map(({ window, used, limit }) => [window.toLowerCase(), `${used} of ${limit}`]);
    this.#log.warn({ key, reason: message, ...Object.fromEntries(counts ?? []) }, text);
  }

  #hasRoom(nowMs: number): boolean {
    this.#writtenAtMs = this.#writtenAtMs.filter((atMs) => nowMs - atMs < REFUSAL_LINES_MS);
    if (this.#writtenAtMs.length >= MAX_REFUSAL_LINES) return false;
    this.#writtenAtMs = [...this.#writtenAtMs, nowMs];
    return true;
  }
}
