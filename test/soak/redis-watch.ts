import { setTimeout as pause } from 'node:timers/promises';
import type { RedisServer } from '../support/redis-server.ts';
import type { Disturbances } from './disturbances.ts';

/** Asks Redis itself, past the proxy, so that its own stalls are told from what petql makes of them. */
export interface RedisWatch {
  stop(): Promise<void>;
}

export interface RedisWatchOptions {
  readonly server: Pick<RedisServer, 'command'>;
  readonly disturbances: Disturbances;
  /** It answered nobody for so long, though nothing was being done to it. */
  onStall(tookMs: number): void;
}

const EVERY_MS = 50;
/** Half of what petql waits for it. */
const STALL_MS = 250;

export function watchRedis({ server, disturbances, onStall }: RedisWatchOptions): RedisWatch {
  const stopping = new AbortController();
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await ask();
      await pause(EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {});
    }
  }

  async function ask(): Promise<void> {
    const fromMs = performance.now();
    let answered: boolean | undefined;
    let over: (() => void) | undefined;
    const mark = () => {
      if (answered === undefined) over = disturbances.begin('stalled');
    };
    // An answer that lies there already is read first: then it was this process that was late.
    const timer = setTimeout(() => setImmediate(mark), STALL_MS);
    answered = await server.command('PING').then(
      () => true,
      // It is gone, which is somebody's doing.
      () => false,
    );
    clearTimeout(timer);
    if (!over) return;
    over();
    const untilMs = performance.now();
    if (answered && !disturbances.touched(['redis'], { fromMs, untilMs })) onStall(untilMs - fromMs);
  }
}
