/**
 * Lets work run at once, or in the order that it came, once so much was done in this turn of the event loop: many connections
 * can bring requests in one turn, and whatever else is due, timers and answers of the service, would wait for all of them.
 */
export type Turns = (work: Work) => void;

/** @returns whether some of it is still to be done once it returns, before anything else that is due. */
export type Work = () => boolean;

/** Most requests take a tenth of a millisecond; so this is only ever reached by crowds and by documents that nobody knows. */
const MOST_MS = 5;

/** @param now milliseconds since some moment. */
export function createTurns(now: () => number = () => performance.now()): Turns {
  const waiting: Work[] = [];
  let turnBeganAtMs: number | undefined;

  return (work) => {
    if (turnBeganAtMs === undefined) beginTurn();
    if (waiting.length === 0 && hasRoom()) run(work);
    else waiting.push(work);
  };

  function beginTurn(): void {
    turnBeganAtMs = now();
    setImmediate(nextTurn);
  }

  function nextTurn(): void {
    turnBeganAtMs = undefined;
    if (waiting.length === 0) return;
    beginTurn();
    let done = 0;
    do run(waiting[done] as Work);
    while (++done < waiting.length && hasRoom());
    waiting.splice(0, done);
  }

  function hasRoom(): boolean {
    return turnBeganAtMs !== undefined && now() - turnBeganAtMs < MOST_MS;
  }

  function run(work: Work): void {
    // How long the rest takes is not known before it is done, which is in this turn.
    if (work()) turnBeganAtMs = -Infinity;
  }
}
