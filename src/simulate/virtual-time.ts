import { createGateway } from '../gateway.ts';

/** The clock and the timers of this process, which stand still until they are moved. */
export interface VirtualTime extends Disposable {
  /** Lets time pass until it is over, one timer after the other: what each starts goes on until it waits for a timer. */
  readonly run: (isOver: () => boolean) => Promise<void>;
  /** Lets happen what needs no time. */
  readonly settle: (isOver: () => boolean) => Promise<void>;
}

interface Timer {
  readonly number: number;
  atMs: number;
  readonly everyMs: number | undefined;
  act: (() => void) | undefined;
}

const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, Date } = globalThis;
const REAL = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, Date };
const realElapsed = performance.now.bind(performance);
const turnOfTheLoop = () => new Promise<void>((resolve) => void setImmediate(resolve));
/** Turns of the loop in which no time passes, after which nothing will happen. */
const MAX_IDLE_TURNS = 100_000;

/** A gateway loads its GraphQL server at its first operation, by real time. */
let loading: Promise<void> | undefined;
async function loadGraphqlServer(): Promise<void> {
  const gateway = createGateway({ petApiUrl: 'http://pet-api.test/v1' });
  await gateway.execute({ document: '{ __typename }' });
  await gateway.close();
}

/** @param startMs the first moment, in milliseconds since the epoch. */
export async function startVirtualTime(startMs: number): Promise<VirtualTime> {
  await (loading ??= loadGraphqlServer());
  let nowMs = startMs;
  let numbers = 0;
  /** By their time and number, the next one last. */
  const timers: Timer[] = [];
  const byNumber = new Map<number, Timer>();

  class VirtualDate extends Date {
    constructor(value: Date | number | string = nowMs) {
      super(value);
    }
    static override now = () => nowMs;
  }

  const clear = (handle: unknown) => {
    const timer = byNumber.get(Number(handle));
    if (timer) forget(timer);
  };
  Object.assign(globalThis, {
    Date: VirtualDate,
    setTimeout: (act: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => start(() => act(...args), ms),
    setImmediate: (act: (...args: unknown[]) => void, ...args: unknown[]) => start(() => act(...args), 0),
    setInterval: (act: () => void, ms = 1) => start(act, ms, Math.max(1, ms)),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  });
  performance.now = () => nowMs - startMs;

  return {
    async run(isOver) {
      for (let idle = 0; ;) {
        await turnOfTheLoop();
        if (isOver()) return;
        const beforeMs = nowMs;
        fireNext();
        idle = nowMs === beforeMs ? idle + 1 : 0;
        if (idle > MAX_IDLE_TURNS) throw new Error('nothing is left to happen, and what is awaited did not come');
      }
    },
    async settle(isOver) {
      while (!isOver()) {
        await turnOfTheLoop();
        while ((timers.at(-1)?.atMs ?? Infinity) <= nowMs) fireNext();
      }
    },
    [Symbol.dispose]() {
      Object.assign(globalThis, REAL);
      performance.now = realElapsed;
    },
  };

  function start(act: () => void, ms: number, everyMs?: number) {
    const timer: Timer = { number: (numbers += 1), atMs: dueMs(ms), everyMs, act };
    insert(timer);
    byNumber.set(timer.number, timer);
    const handle = {
      ref: () => handle,
      unref: () => handle,
      hasRef: () => true,
      refresh() {
        timers.splice(timers.indexOf(timer), 1);
        timer.atMs = dueMs(ms);
        insert(timer);
        return handle;
      },
      [Symbol.toPrimitive]: () => timer.number,
    };
    return handle;
  }

  function dueMs(ms: number): number {
    return nowMs + Math.max(0, Math.trunc(ms || 0));
  }

  function insert(timer: Timer): void {
    let low = 0;
    for (let high = timers.length; low < high;) {
      const middle = (low + high) >>> 1;
      const { atMs = 0, number = 0 } = timers[middle] ?? {};
      if (atMs > timer.atMs || (atMs === timer.atMs && number > timer.number)) low = middle + 1;
      else high = middle;
    }
    timers.splice(low, 0, timer);
  }

  /** A timer that is cleared stays in its place until its time comes. */
  function forget(timer: Timer): void {
    byNumber.delete(timer.number);
    timer.act = undefined;
  }

  function fireNext(): void {
    let timer = timers.pop();
    while (timer && !timer.act) timer = timers.pop();
    if (!timer) return;
    nowMs = Math.max(nowMs, timer.atMs);
    const { act, everyMs } = timer;
    if (everyMs === undefined) forget(timer);
    else insert(Object.assign(timer, { atMs: nowMs + everyMs }));
    act?.();
  }
}
