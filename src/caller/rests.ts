import type { Clock } from '../clock.ts';
import type { RetryQuota } from './retry-quota.ts';

/** The pauses of one caller's demands between a call that failed and the retry. */
export interface Rests {
  /**
   * Begins a pause for all that waited for one call; when it is over they ask together.
   *
   * @param tries how often a call for one of them was tried again already.
   * @returns undefined where nothing is to be tried again.
   */
  begin(tries: number): Rest | undefined;
  /** Whether any is not over. */
  any(): boolean;
  /** Ends all of them, and begins no more. */
  close(): void;
}

export interface Rest {
  /** By `clock.elapsed()`. */
  readonly untilMs: number;
  readonly over: boolean;
}

export interface RestsOptions {
  readonly clock: Pick<Clock, 'elapsed'>;
  readonly retryQuota: Pick<RetryQuota, 'room'>;
  /** How long a demand rests on average before its first retry, its second, and so on, in milliseconds. */
  readonly pausesMs: readonly number[];
  onOver(): void;
}

export function createRests({ clock, retryQuota, pausesMs, onOver }: RestsOptions): Rests {
  const timers = new Map<{ over: boolean }, NodeJS.Timeout>();
  let closed = false;
  return {
    begin(tries) {
      const usualMs = pausesMs[tries];
      // Each that rests will want a retry of its own.
      if (closed || usualMs === undefined || retryQuota.room <= timers.size) return undefined;
      const pauseMs = usualMs * (0.5 + Math.random());
      const rest = { untilMs: clock.elapsed() + pauseMs, over: false };
      const end = () => {
        rest.over = true;
        timers.delete(rest);
        onOver();
      };
      timers.set(rest, setTimeout(end, pauseMs));
      return rest;
    },
    any: () => timers.size > 0,
    close() {
      closed = true;
      for (const [rest, timer] of timers) {
        clearTimeout(timer);
        rest.over = true;
      }
      timers.clear();
    },
  };
}
