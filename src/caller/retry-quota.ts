import type { Clock } from '../clock.ts';

/**
 * Keeps retries few, over all callers of a process: when one is sent, the retries of the minute that ends then, this one
 * among them, are at most a tenth of the other calls of that minute. So an upstream that fails is never asked much more
 * than one that works, and a call of a quiet minute is not tried again.
 */
export interface RetryQuota {
  /** A call that is no retry was sent. */
  called(): void;
  /** How many retries may be sent now. */
  readonly room: number;
  /** Takes one, to be sent at once; false where there is none. */
  take(): boolean;
}

const CALLS_A_RETRY = 10;
const SECONDS = 60;

interface Second {
  /** Since the clock began. */
  readonly at: number;
  calls: number;
  retries: number;
}

export function createRetryQuota({ elapsed }: Pick<Clock, 'elapsed'>): RetryQuota {
  /** The oldest first. */
  const seconds: Second[] = [];

  return {
    called() {
      thisSecond().calls += 1;
    },
    get room() {
      return room();
    },
    take() {
      if (room() < 1) return false;
      thisSecond().retries += 1;
      return true;
    },
  };

  /** Of the oldest second only a part lies in the minute: to be safe its retries count, and its calls do not. */
  function room(): number {
    const { at: now } = thisSecond();
    let calls = 0;
    let retries = 0;
    for (const second of seconds) {
      retries += second.retries;
      if (second.at > now - SECONDS) calls += second.calls;
    }
    return Math.max(0, Math.floor(calls / CALLS_A_RETRY) - retries);
  }

  function thisSecond(): Second {
    const at = Math.floor(elapsed() / 1000);
    while (seconds[0] && seconds[0].at < at - SECONDS) seconds.shift();
    const last = seconds.at(-1);
    if (last?.at === at) return last;
    const second = { at, calls: 0, retries: 0 };
    seconds.push(second);
    return second;
  }
}
