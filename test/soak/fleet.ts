import { readFile } from 'node:fs/promises';
import { startReplicas } from '../prove/replicas.ts';
import type { ReplicasOptions } from '../prove/replicas.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import type { Level } from './checks/levels.ts';
import type { ProcessCheck } from './checks/processes.ts';
import { descriptorsOf } from './descriptors.ts';
import type { Ports } from './descriptors.ts';
import type { Disturbances } from './disturbances.ts';

/** The replicas as a load balancer and an operator have them. */
export interface Fleet {
  readonly size: number;
  /** Those that requests are sent to. */
  inService(): readonly Target[];
  /** Every process that runs now. */
  running(): readonly { readonly replica: number; readonly pid: number }[];
  /** SIGTERM, and a new process. */
  stop(index: number): Promise<void>;
  /** kill -9, and a new process. */
  kill(index: number): Promise<void>;
  /** SIGSTOP, and SIGCONT when `over` settles. */
  freeze(index: number, over: Promise<unknown>): Promise<void>;
  /** Somebody sets its machine's clock. */
  jumpClock(index: number): void;
  /** Writes down how much each holds. */
  measure(): Promise<void>;
  /** Each process that lived, and how much it held when. */
  processes(): readonly { readonly name: string; readonly levels: readonly Level[] }[];
  /** SIGTERM to all, for good. */
  close(): Promise<void>;
}

export interface Target {
  readonly replica: number;
  readonly life: number;
  readonly endpoint: string;
}

export interface FleetOptions extends ReplicasOptions {
  readonly disturbances: Disturbances;
  readonly check: ProcessCheck;
}

interface Life {
  readonly name: string;
  readonly number: number;
  readonly process: PetqlProcess;
  readonly levels: Level[];
  asked: 'kill' | 'stop' | undefined;
  askedAtMs: number;
  serving: boolean;
  frozen: boolean;
  /** Of its standard error, how much was read. */
  read: number;
}

/** A load balancer hears so late that a process is about to stop. */
const STILL_ASKED_MS = 150;
const METRICS_WITHIN_MS = 2_000;

export async function startFleet({ disturbances, check, ...options }: FleetOptions): Promise<Fleet> {
  const replicas = await startReplicas(options);
  const ports: Ports = {
    service: portOf(options.upstreamUrl),
    redis: options.redisUrl === undefined ? undefined : portOf(options.redisUrl),
  };
  const past: Life[] = [];
  const lives = replicas.endpoints.map((_, index) => live(index, 0));
  const startedMs = performance.now();

  return {
    size: lives.length,
    inService: () =>
      lives.flatMap(({ serving, number, process }, replica) =>
        serving ? [{ replica, life: number, endpoint: process.address }] : [],
      ),
    running: () => lives.map(({ process: { pid } }, replica) => ({ replica, pid })),
    async stop(index) {
      const over = disturbances.begin('stopping', index);
      await stopOne(at(index));
      await startAnew(index);
      over();
    },
    async kill(index) {
      const over = disturbances.begin('killed', index);
      const life = at(index);
      ask(life, 'kill');
      life.serving = false;
      life.process.kill('SIGKILL');
      await life.process.exited;
      await startAnew(index);
      over();
    },
    async freeze(index, until) {
      const over = disturbances.begin('frozen', index);
      const life = at(index);
      life.process.kill('SIGSTOP');
      life.frozen = true;
      await until;
      life.process.kill('SIGCONT');
      life.frozen = false;
      over();
    },
    jumpClock(index) {
      at(index).process.kill('SIGUSR2');
      disturbances.begin('clock', index)();
    },
    async measure() {
      for (const life of lives) {
        readLog(life);
        if (!life.serving || life.frozen || life.asked) continue;
        const level = await levelOf(life.process, ports, performance.now() - startedMs).catch(() => undefined);
        if (level) life.levels.push(level);
      }
    },
    processes: () => [...past, ...lives],
    async close() {
      await Promise.all(lives.map(stopOne));
    },
  };

  function live(index: number, number: number): Life {
    const process = replicas.process(index);
    const life: Life = {
      name: `replica ${index}.${number}`,
      number,
      process,
      levels: [],
      asked: undefined,
      askedAtMs: 0,
      serving: true,
      frozen: false,
      read: 0,
    };
    void process.exited.then((exit) => {
      life.serving = false;
      readLog(life, true);
      check.ended({ name: life.name, asked: life.asked, exit, tookMs: performance.now() - life.askedAtMs });
    });
    return life;
  }

  function at(index: number): Life {
    const life = lives[index];
    if (!life) throw new Error(`expected a replica below ${lives.length}, got ${index}`);
    return life;
  }

  function ask(life: Life, what: 'kill' | 'stop'): void {
    life.asked = what;
    life.askedAtMs = performance.now();
  }

  async function stopOne(life: Life): Promise<void> {
    ask(life, 'stop');
    life.process.kill('SIGTERM');
    setTimeout(() => (life.serving = false), STILL_ASKED_MS);
    await life.process.exited;
  }

  async function startAnew(index: number): Promise<void> {
    const before = at(index);
    past.push(before);
    await replicas.restart(index);
    lives[index] = live(index, before.number + 1);
  }

  function readLog(life: Life, toEnd = false): void {
    const text = life.process.output.stderr.slice(life.read);
    const end = toEnd ? text.length : text.lastIndexOf('\n') + 1;
    life.read += end;
    for (const line of text.slice(0, end).split('\n')) if (line) check.logged(life.name, line);
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

async function levelOf({ pid, output }: PetqlProcess, ports: Ports, atMs: number): Promise<Level> {
  const admin = /^Admin +(\S+)/m.exec(output.stdout)?.[1] ?? '';
  const response = await fetch(admin, { signal: AbortSignal.timeout(METRICS_WITHIN_MS) });
  const metrics = await response.text();
  const figure = (name: string) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)?.[1]);
  const [descriptors, memory] = await Promise.all([descriptorsOf(pid, ports), readFile(`/proc/${pid}/status`, 'utf8')]);
  return {
    atMs,
    fds: Object.values(descriptors).reduce((sum, count) => sum + count, 0),
    descriptors,
    handles: figure('nodejs_active_resources_total'),
    heapMb: figure('nodejs_heap_size_used_bytes') / 2 ** 20,
    rssMb: Number(/^VmRSS:\s+(\d+)/m.exec(memory)?.[1]) / 2 ** 10,
  };
}
