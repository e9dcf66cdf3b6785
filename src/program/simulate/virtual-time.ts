import { createGateway } from '../../index.ts';
import { VirtualTimers } from './virtual-timers.ts';

/** The clock and the timers of this process, which stand still until they are moved. */
export interface VirtualTime extends Disposable {
  /** Lets time pass until `isOver`, one timer after the other. After each, code runs until it waits for a timer. */
  readonly run: (isOver: () => boolean) => Promise<void>;
  /** Runs code until `isOver`, and the timers that are due. No time passes. Default: until nothing more happens. */
  readonly settle: (isOver?: () => boolean) => Promise<void>;
  /** Lets time pass while nothing runs, as where the process is blocked. */
  readonly pass: (ms: number) => void;
}

const { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, Date } = globalThis;
const REAL = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, Date };
const realElapsed = performance.now.bind(performance);
const turnOfTheLoop = () => new Promise<void>((resolve) => void setImmediate(resolve));
/** Turns of the loop without a passing of time, after which nothing more happens. */
const MAX_IDLE_TURNS = 100_000;

/** Loads the GraphQL server by real time, as a gateway does at its first operation. Once in a process. */
let loading: Promise<void> | undefined;
async function loadGraphqlServer(): Promise<void> {
  const gateway = createGateway({ petApiUrl: 'http://pet-api.test/v1' });
  await gateway.ready();
  await gateway.close();
}

/** @param startMs the first moment, in milliseconds since the epoch. */
export async function startVirtualTime(startMs: number): Promise<VirtualTime> {
  loading ??= loadGraphqlServer();
  await loading.catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  const timers = new VirtualTimers(startMs);
  replaceGlobals(timers, startMs);

  return {
    async run(isOver) {
      for (let idle = 0; ;) {
        await turnOfTheLoop();
        if (isOver()) return;

        const beforeMs = timers.nowMs;
        timers.fireNext();
        idle = timers.nowMs === beforeMs ? idle + 1 : 0;
        if (idle > MAX_IDLE_TURNS) throw new Error('no timer is left, and the awaited event did not come');
      }
    },

    async settle(isOver) {
      let isIdle = false;
      while (isOver ? !isOver() : !isIdle) {
        await turnOfTheLoop();
        isIdle = !timers.isDue;
        while (timers.isDue) timers.fireNext();
      }
    },

    pass: (ms) => timers.pass(ms),

    [Symbol.dispose]() {
      Object.assign(globalThis, REAL);
      performance.now = realElapsed;
    },
  };
}

function replaceGlobals(timers: VirtualTimers, startMs: number): void {
  class VirtualDate extends Date {
    constructor(value: Date | number | string = timers.nowMs) {
      super(value);
    }
    static override now = () => timers.nowMs;
  }

  const clear = (handle: unknown) => timers.clear(handle);
  Object.assign(globalThis, {
    Date: VirtualDate,
    setTimeout: (act: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => timers.start(() => act(...args), ms),
    setImmediate: (act: (...args: unknown[]) => void, ...args: unknown[]) => timers.start(() => act(...args), 0),
    setInterval: (act: () => void, ms = 1) => timers.start(act, ms, Math.max(1, ms)),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  });
  performance.now = () => timers.nowMs - startMs;
}
