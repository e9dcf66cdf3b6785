import type { Clock } from './clock.ts';

/**
 * How much longer than a deadline its request may be kept by the ledger and the records, in milliseconds: what they are about
 * to say is not late because it takes them a moment, even where the request may not wait at all.
 */
export const MOMENT_MS = 100;

/** For how many milliseconds from now a request with this deadline may be kept by them. */
export function leftMs(deadlineMs: number, { elapsed }: Pick<Clock, 'elapsed'>): number {
  return deadlineMs + MOMENT_MS - elapsed();
}

/** What the promise brings, or else `late` after so many milliseconds; whoever made the promise sees to what comes of it then. */
export function inTime<T, Late>(promise: Promise<T>, withinMs: number, late: Late): Promise<Late | T> {
  return new Promise((resolve, reject) => {
    // Where this process was kept from running, the answer may be there, unread: it is read before the immediate.
    const timer = setTimeout(() => setImmediate(() => resolve(late)), Math.max(0, withinMs));
    promise.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}
