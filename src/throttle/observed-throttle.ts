import type { Clock } from '../clock.ts';
import type { Events } from '../events.ts';
import type { Throttle } from './throttle.ts';

/** Tells how long each call waited for its turn, and changes nothing about it. */
export function observedThrottle(throttle: Throttle, { elapsed }: Clock, events: Events): Throttle {
  return {
    pass(turn, send) {
      const askedAtMs = elapsed();
      return throttle.pass(turn, () => {
        const sending = send();
        if (sending) events.waited({ kind: turn.kind, waitedMs: elapsed() - askedAtMs });
        return sending;
      });
    },
    standing: () => throttle.standing(),
    refreshed: () => throttle.refreshed(),
    outlook: (ahead) => throttle.outlook(ahead),
    get waiting() {
      return throttle.waiting;
    },
    get busy() {
      return throttle.busy;
    },
    close: () => throttle.close(),
  };
}
