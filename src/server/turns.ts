/**
 * Lets work run at once, or in the order that it came, once so much was done in this turn of the event loop: many connections
 * can bring requests in one turn, and whatever else is due, timers and answers of the service, would wait for all of them.
 */
export type Turns = (work: () => void) => void;

/** Most requests take a tenth of a millisecond; so this is only ever reached by crowds and by documents that nobody knows. */
const MOST_MS = 5;

/** @param now milliseconds since some moment. */
export function createTurns(now: () => number = () => performance.now()): Turns {
  const waiting: (() => void)[] = [];
  let turnBeganAtMs: number | undefined;

  return (work) => {
    if (turnBeganAtMs === undefined) {
      turnBeganAtMs = now();
      setImmediate(nextTurn);
    }
    if (waiting.length === 0 && now() - turnBeganAtMs < MOST_MS) work();
    else waiting.push(work);
  };

  function nextTurn(): void {
    turnBeganAtMs = undefined;
    if (waiting.length === 0) return;
    turnBeganAtMs = now();
    setImmediate(nextTurn);
    let done = 0;
    do waiting[done]?.();
    while (++done < waiting.length && now() - turnBeganAtMs < MOST_MS);
    waiting.splice(0, done);
  }
}
