import type { Clock } from '../clock.ts';
import type { Taken } from './account/account.ts';
import type { Permit } from './account/format.ts';

interface PermitSourceOptions {
  readonly clock: Clock;
  readonly take: (wanted: number) => Promise<Taken>;
  /** Gets the permits that were granted, if any. */
  readonly onTaken: (permits: readonly Permit[]) => void;
  readonly onFailure: (error: unknown) => void;
  /** Called when the account has been read, and when it may have permits again. */
  readonly onOpen: () => void;
}

/** While another replica's probe is in flight, petql reads the account again after this, then after twice this, and so on. */
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 200;
const AFTER_FAILURE_MS = 1_000;
/** petql reads the account again after this: Redis may be available again, or another replica may have freed permits. */
const MAX_WAIT_MS = 1_000;

/** Takes permits of one key from its account, and waits while there are none. */
export class PermitSource {
  readonly #options: PermitSourceOptions;
  /** Settles when the account has been read; undefined while it is not being read. */
  #taking: Promise<void> | undefined;
  /** By `clock.elapsed()`: no permit is free before this. */
  #waitUntilMs = 0;
  /** How often in a row the account had a probe in flight. */
  #polls = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PermitSourceOptions) {
    this.#options = options;
  }

  /** Settles when the account has been read; undefined while it is not being read. */
  get taking(): Promise<void> | undefined {
    return this.#taking;
  }

  /** Takes up to `wanted` permits now, or calls `onOpen` once there may be some. */
  take(wanted: number): void {
    const { clock, onOpen } = this.#options;
    clearTimeout(this.#timer);
    const leftMs = this.#waitUntilMs - clock.elapsed();
    if (leftMs > 0) this.#timer = setTimeout(onOpen, Math.ceil(leftMs));
    else this.#taking = this.#takeNow(wanted);
  }

  /** Ends the wait for permits: a settlement may have freed some. */
  reopen(): void {
    this.#waitUntilMs = 0;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  async #takeNow(wanted: number): Promise<void> {
    const { clock, take, onTaken, onFailure, onOpen } = this.#options;
    try {
      const { permits, wait } = await take(wanted);
      this.#polls = wait?.by === 'probe' ? this.#polls + 1 : 0;
      this.#waitUntilMs = wait ? clock.elapsed() + this.#boundedMs(wait.waitMs) : 0;
      onTaken(permits);
    } catch (error) {
      this.#waitUntilMs = clock.elapsed() + AFTER_FAILURE_MS;
      onFailure(error);
    }
    this.#taking = undefined;
    onOpen();
  }

  #boundedMs(waitMs: number): number {
    const maxMs = this.#polls === 0 ? MAX_WAIT_MS : Math.min(MIN_POLL_MS * 2 ** (this.#polls - 1), MAX_POLL_MS);
    return Math.max(1, Math.min(waitMs, maxMs));
  }
}
