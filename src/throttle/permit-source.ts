import type { Clock } from '../clock.ts';
import type { Permit, Taken } from './account.ts';

/** Takes permits of one key from its account, and waits while there are none. */
export interface PermitSource {
  /** Takes up to `wanted` permits now, or calls `onOpen` once there may be some. */
  take(wanted: number): void;
  /** A report may have opened what was closed. */
  reopen(): void;
  /** Settles when the account has been read; undefined while it is not being read. */
  readonly taking: Promise<void> | undefined;
  close(): void;
}

export interface PermitSourceOptions {
  readonly clock: Clock;
  take(wanted: number): Promise<Taken>;
  onTaken(permits: readonly Permit[]): void;
  onFailure(error: unknown): void;
  onOpen(): void;
}

/** While another replica's probe is under way, the account is read again after this, then after twice this, and so on. */
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 200;
const AFTER_FAILURE_MS = 1_000;
/** The account is read again after this: Redis may be available again, or another replica may have freed permits. */
const MAX_CLOSED_MS = 1_000;

export function createPermitSource({ clock, take, onTaken, onFailure, onOpen }: PermitSourceOptions): PermitSource {
  let taking: Promise<void> | undefined;
  /** By `clock.elapsed()`: no permit is free before this. */
  let pausedUntilMs = 0;
  let polls = 0;
  let wake: NodeJS.Timeout | undefined;

  return {
    take(wanted) {
      const leftMs = pausedUntilMs - clock.elapsed();
      clearTimeout(wake);
      if (leftMs > 0) wake = setTimeout(onOpen, Math.ceil(leftMs));
      else taking = takeNow(wanted);
    },
    reopen() {
      pausedUntilMs = 0;
    },
    get taking() {
      return taking;
    },
    close: () => clearTimeout(wake),
  };

  async function takeNow(wanted: number): Promise<void> {
    try {
      const { permits, closed } = await take(wanted);
      polls = closed?.by === 'probe' ? polls + 1 : 0;
      pausedUntilMs = closed ? clock.elapsed() + closedForMs(closed.waitMs) : 0;
      onTaken(permits);
    } catch (error) {
      pausedUntilMs = clock.elapsed() + AFTER_FAILURE_MS;
      onFailure(error);
    }
    taking = undefined;
    onOpen();
  }

  function closedForMs(waitMs: number): number {
    const pollMs = polls === 0 ? MAX_CLOSED_MS : Math.min(MIN_POLL_MS * 2 ** (polls - 1), MAX_POLL_MS);
    return Math.max(1, Math.min(waitMs, pollMs));
  }
}
