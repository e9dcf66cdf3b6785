import type { Clock } from '../clock.ts';

/**
 * Tells whose deadlines have come. There is one timer for all of them, so that those that fall together are told together: what
 * follows from a deadline is then done once, and not once for each.
 */
export interface Deadlines<W extends Waits> {
  add(waiter: W): void;
  /** It waits no more; nothing happens where it has been told. */
  delete(waiter: W): void;
  /** The earliest that has not come, by `clock.elapsed()`; Infinity where there is none. */
  earliestMs(): number;
}

interface Waits {
  /** By `clock.elapsed()`. */
  readonly deadlineMs: number;
}

/** Those with the same deadline, as all that one request asks for have. */
interface Group<W> {
  readonly deadlineMs: number;
  readonly waiters: Set<W>;
}

/** @param onCome is told of each deadline that has come, the earliest first, with those that still waited then. */
export function createDeadlines<W extends Waits>(
  { elapsed }: Pick<Clock, 'elapsed'>,
  onCome: (waiters: ReadonlySet<W>, deadlineMs: number) => void,
): Deadlines<W> {
  /** The earliest first. */
  const groups: Group<W>[] = [];
  let timer: NodeJS.Timeout | undefined;
  /** What the timer is set for: the earliest deadline, or an earlier one that nobody has any more. */
  let timerMs = Infinity;

  return {
    add(waiter) {
      const { deadlineMs } = waiter;
      const index = firstAt(deadlineMs);
      const group = groups[index];
      if (group?.deadlineMs === deadlineMs) group.waiters.add(waiter);
      else groups.splice(index, 0, { deadlineMs, waiters: new Set([waiter]) });
      setTimer();
    },
    delete(waiter) {
      const index = firstAt(waiter.deadlineMs);
      const group = groups[index];
      if (group?.deadlineMs !== waiter.deadlineMs) return;
      group.waiters.delete(waiter);
      if (group.waiters.size > 0) return;
      groups.splice(index, 1);
      if (groups.length === 0) stopTimer();
    },
    earliestMs: () => groups[0]?.deadlineMs ?? Infinity,
  };

  /** Where the groups begin whose deadline is not before this one. */
  function firstAt(deadlineMs: number): number {
    let low = 0;
    let high = groups.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((groups[middle] as Group<W>).deadlineMs < deadlineMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function setTimer(): void {
    const [earliest] = groups;
    if (!earliest || earliest.deadlineMs >= timerMs) return;
    clearTimeout(timer);
    timerMs = earliest.deadlineMs;
    timer = setTimeout(come, Math.max(0, timerMs - elapsed()));
  }

  function stopTimer(): void {
    clearTimeout(timer);
    timerMs = Infinity;
  }

  function come(): void {
    // A timer may be a little early: what it was set for has come all the same.
    const nowMs = Math.max(timerMs, elapsed());
    timerMs = Infinity;
    const later = groups.findIndex(({ deadlineMs }) => deadlineMs > nowMs);
    const due = groups.splice(0, later < 0 ? groups.length : later);
    setTimer();
    for (const { waiters, deadlineMs } of due) onCome(waiters, deadlineMs);
  }
}
