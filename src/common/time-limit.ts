import type { Clock } from './clock.ts';

/** Grace beyond a deadline for reading the store. */
export const MOMENT_MS = 100;

/** What may end at any time, such as an outage of Redis, is expected to end within this. */
export const SOON_MS = 1_000;

/** Returns how long from now a request with this deadline may wait for the store: `MOMENT_MS` more than is left. */
export function graceLeftMs(deadlineMs: number, clock: Pick<Clock, 'elapsed'>): number {
  return deadlineMs + MOMENT_MS - clock.elapsed();
}

/** Resolves with the promise, or with undefined after `maxMs`. The promise goes on; its maker handles its end. */
export function waitAtMost<T>(promise: Promise<T>, maxMs: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    // After a blocked event loop the result may have arrived unread. It is read before the immediate.
    const timer = setTimeout(() => setImmediate(() => resolve(undefined)), Math.max(0, maxMs));
    promise.finally(() => clearTimeout(timer)).then(resolve, reject);
  });
}

/** Resolves after `ms`. The function of node:timers/promises ignores the fake timers of tests. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, Math.ceil(ms));
  });
}
