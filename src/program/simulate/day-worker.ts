/** Runs in its own thread: virtual time replaces the timers of a whole thread, and each plan takes a processor. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Plan } from '../../common/plan.ts';
import { simulateDay } from './day.ts';
import type { Day } from './day.ts';
import type { Load } from './load.ts';

export interface DayWorkerData {
  readonly plan: Plan;
  readonly load: Load;
}

export type DayWorkerMessage =
  | { readonly kind: 'day'; readonly day: Day }
  | { readonly kind: 'progress'; readonly share: number };

const { plan, load } = workerData as DayWorkerData;
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of a thread, not a window
const send = (message: DayWorkerMessage) => parentPort?.postMessage(message);
send({ kind: 'day', day: await simulateDay(plan, load, (share) => send({ kind: 'progress', share })) });
