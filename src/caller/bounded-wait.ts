import type { Clock } from '../clock.ts';

/** How long a submit waits for another one. */
export interface Patience {
  /** By `clock.elapsed()`. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
}

export interface BoundedWait {
  /** Settles with the promise, or rejects at the deadline, when nobody wants it any more, or when petql stops. */
  until<T>(promise: Promise<T>, patience: Patience): Promise<T>;
  /** Ends every wait, and each new one at once. */
  close(): void;
}

export interface BoundedWaitErrors {
  deadline(): Error;
  aborted(): Error;
  stopping(): Error;
}

export function createBoundedWait({ elapsed }: Pick<Clock, 'elapsed'>, errors: BoundedWaitErrors): BoundedWait {
  const stops = new Set<() => void>();
  let stopping = false;
  return {
    until: (promise, { deadlineMs, signal }) =>
      new Promise((resolve, reject) => {
        const leave = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', onAbort);
          stops.delete(onStop);
        };
        const giveUp = (error: Error) => {
          leave();
          reject(error);
        };
        const onAbort = () => giveUp(errors.aborted());
        const onStop = () => giveUp(errors.stopping());
        const timer = setTimeout(() => giveUp(errors.deadline()), Math.max(0, deadlineMs - elapsed()));
        signal?.addEventListener('abort', onAbort, { once: true });
        stops.add(onStop);
        if (stopping) onStop();
        if (signal?.aborted) onAbort();
        promise.then(resolve, reject).finally(leave);
      }),
    close() {
      stopping = true;
      for (const stop of stops) stop();
    },
  };
}
