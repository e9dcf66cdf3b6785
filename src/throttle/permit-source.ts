import type { Clock } from '../clock.ts';
import type { Taken } from './account/account.ts';
import type { Permit } from './account/format.ts';

interface PermitSourceOptions {
  readonly clock: Clock;
  readonly take: (wanted: number) => Promise<Taken>;
  readonly onTaken: (permits: readonly Permit[]) => void;
  readonly onFailure: (error: unknown) => void;
  readonly onOpen: () => void;
}

/** While another replica's probe is under way, the account is read again after this, then after twice this, and so on. */
const MIN_POLL_MS = 20;
const MAX_POLL_MS = 200;
const AFTER_FAILURE_MS = 1_000;
/** The account is read again after this: Redis may be available again, or another replica may have freed permits. */
const MAX_CLOSED_MS = 1_000;

/** Takes permits of one key from its account, and waits while there are none. */
export function createPermitSource({ clock, take, onTaken, onFailure, onOpen }: PermitSourceOptions) {
  let taking: Promise<void> | undefined;
  /** By `clock.elapsed()`: no permit is free before this. */
  let pausedUntilMs = 0;
  let polls = 0;
  let wake: NodeJS.Timeout | undefined;

  return {
    /** Takes up to `wanted` permits now, or calls `onOpen` once there may be some. */
    take(wanted: number) {
      const leftMs = pausedUntilMs - clock.elapsed();
      clearTimeout(wake);
      if (leftMs > 0) wake = setTimeout(onOpen, Math.ceil(leftMs));
      else taking = takeNow(wanted);
    },
    /** A settlement may have opened what was closed. */
    reopen() {
      pausedUntilMs = 0;
    },
    /** Settles when the account has been read; undefined while it is not being read. */
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
