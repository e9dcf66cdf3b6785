import type { CallAnswer } from '../call-answer.ts';
import type { Clock } from '../clock.ts';
import { backoffMs } from './backoff.ts';

/** How a call ended. */
interface EndedCall {
  readonly isFailure: boolean;
  /** By `clock.elapsed()`. */
  readonly sentAtMs: number;
  readonly retryAfterMs: number | undefined;
}

/** A circuit breaker: where several kinds of calls fail and none succeeds, one call in each backoff finds out. */
export class Outage {
  readonly #elapsed: Clock['elapsed'];
  readonly #minKinds: number;
  readonly #maxBackoffMs: number;
  /** The kinds that have failed since the last success. */
  readonly #failed = new Set<string>();
  /** Tries in a row that failed: calls that were in flight together are one. */
  #failures = 0;
  #firstAtMs = 0;
  #lastAtMs = -Infinity;
  #retryAtMs = -Infinity;
  #isProbing = false;

  /**
   * @param minKinds so many kinds have to fail: what one client asks for may fail alone.
   * @param maxBackoffMs also in a long outage.
   */
  constructor({ elapsed }: Pick<Clock, 'elapsed'>, minKinds: number, maxBackoffMs = Infinity) {
    this.#elapsed = elapsed;
    this.#minKinds = minKinds;
    this.#maxBackoffMs = maxBackoffMs;
  }

  get isOpen(): boolean {
    return this.#failed.size >= this.#minKinds;
  }

  /** How many calls may be sent now. */
  get freeCalls(): number {
    if (!this.isOpen) return Infinity;
    return this.#isProbing || this.#elapsed() < this.#retryAtMs ? 0 : 1;
  }

  /** The time until a call finds out. */
  get waitMs(): number {
    return this.isOpen ? Math.max(0, this.#retryAtMs - this.#elapsed()) : 0;
  }

  /** Records that a call is sent. */
  begin(): void {
    this.#isProbing = this.isOpen;
  }

  /** Records that a call has ended that shows nothing of the upstream, such as by a 429. */
  skip(): void {
    this.#isProbing = false;
  }

  /** Records that a call has succeeded or failed. */
  end(kind: string, { isFailure, sentAtMs, retryAfterMs }: EndedCall): void {
    this.#isProbing = false;
    if (isFailure) this.#recordFailure(kind, sentAtMs, retryAfterMs);
    else if (sentAtMs >= this.#firstAtMs) this.#close();
  }

  #close(): void {
    this.#failed.clear();
    this.#failures = 0;
    this.#retryAtMs = -Infinity;
  }

  #recordFailure(kind: string, sentAtMs: number, retryAfterMs: number | undefined): void {
    const nowMs = this.#elapsed();
    if (this.#failures === 0) this.#firstAtMs = nowMs;
    if (sentAtMs >= this.#lastAtMs) this.#failures += 1;
    this.#lastAtMs = nowMs;
    if (this.#failed.size < this.#minKinds) this.#failed.add(kind);

    const lastsMs = nowMs - this.#firstAtMs;
    const waitMs = backoffMs({ count: this.#failures, lastsMs, retryAfterMs });
    this.#retryAtMs = Math.max(this.#retryAtMs, nowMs + Math.min(waitMs, this.#maxBackoffMs));
  }
}

/** Two kinds of calls: lists and the writes of one name are one each, and all single pets, whose ids clients choose, are one. */
const MIN_KINDS = 2;
/** Two keys that the upstream has accepted before. */
const MIN_KEYS = 2;
/** With many keys, each needs few calls. */
const MAX_API_BACKOFF_MS = 30_000;

/** Creates the breaker of the pet API, for all keys of a process. */
export function createApiOutage(clock: Pick<Clock, 'elapsed'>): Outage {
  return new Outage(clock, MIN_KEYS, MAX_API_BACKOFF_MS);
}

/** What an outage leaves to one API key: by its own calls, and by those of all keys. */
export class KeyOutage {
  readonly #apiKey: string;
  readonly #api: Outage;
  readonly #clock: Pick<Clock, 'elapsed'>;
  /** Made by the first failure, since most keys have none. */
  #own: Outage | undefined;

  constructor(apiKey: string, api: Outage, clock: Pick<Clock, 'elapsed'>) {
    this.#apiKey = apiKey;
    this.#api = api;
    this.#clock = clock;
  }

  get isOpen(): boolean {
    return this.#own?.isOpen === true || this.#api.isOpen;
  }

  /** How many calls may be sent now; Infinity while the upstream works. */
  get freeCalls(): number {
    return Math.min(this.#own?.freeCalls ?? Infinity, this.#api.freeCalls);
  }

  /** The time until a call finds out. */
  get waitMs(): number {
    return Math.max(this.#own?.waitMs ?? 0, this.#api.waitMs);
  }

  /** Records that a call is sent. */
  begin(): void {
    this.#own?.begin();
    this.#api.begin();
  }

  /** Records that a call has ended which shows nothing of the upstream. */
  skip(): void {
    this.#own?.skip();
    this.#api.skip();
  }

  /**
   * Records how a call ended.
   *
   * @param kind of the call.
   * @param isPaused whether it has paused the key, which says when to call again.
   * @param isProven whether the upstream has accepted the key before: anybody can make up keys.
   */
  end(
    kind: string,
    { health, rateLimit }: CallAnswer,
    {
      sentAtMs,
      isPaused,
      isProven,
    }: { readonly sentAtMs: number; readonly isPaused: boolean; readonly isProven: boolean },
  ): void {
    const isFailure = health !== 'works';
    const call = { isFailure, sentAtMs, retryAfterMs: rateLimit?.retryAfterMs };
    if (health === 'unknown' || isPaused) this.#own?.skip();
    else if (isFailure) (this.#own ??= new Outage(this.#clock, MIN_KINDS)).end(kind, call);
    else this.#own?.end(kind, call);

    // A 403 is about the key.
    const isOfApi = health === 'works' || (health === 'fails' && isProven);
    if (isOfApi && !isPaused) this.#api.end(this.#apiKey, call);
    else this.#api.skip();
  }
}
