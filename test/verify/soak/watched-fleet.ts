import { readFile, readdir } from 'node:fs/promises';
import type { Faults } from '../../support/faults.ts';
import { figureOf, metricsOf, startFleet } from '../../support/fleet.ts';
import type { FleetOptions } from '../../support/fleet.ts';
import type { PetqlProcess } from '../../support/run-petql.ts';
import { Tally } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';
import type { Level } from './levels.ts';

/** The replicas as a load balancer and an operator have them. */
export interface WatchedFleet {
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
  /** The clock of its machine is set. */
  jumpClock(index: number): void;
  /** Writes down how much each holds. */
  measure(): Promise<void>;
  /** Each process that lived, and how much it held when. */
  processes(): readonly { readonly name: string; readonly levels: readonly Level[] }[];
  /** No process ends by itself, all stop when they are told to, and none logs that something is wrong with petql. */
  readonly rows: readonly Row[];
  /** SIGTERM to all, for good. */
  close(): Promise<void>;
}

export interface Target {
  readonly replica: number;
  readonly life: number;
  readonly endpoint: string;
}

interface Life {
  readonly name: string;
  readonly number: number;
  readonly process: PetqlProcess;
  readonly levels: Level[];
  signal: 'SIGKILL' | 'SIGTERM' | undefined;
  signalledMs: number;
  isServing: boolean;
  isFrozen: boolean;
  /** Of its standard error, how much was read. */
  read: number;
}

/** A load balancer hears so late that a process is about to stop. */
const STILL_SERVED_MS = 150;
/** Containers are killed 10 seconds after SIGTERM. */
const GONE_WITHIN_MS = 10_000;
/** Of pino. */
const ERROR_LEVEL = 50;

export async function startWatchedFleet(options: FleetOptions, faults: Faults): Promise<WatchedFleet> {
  const fleet = await startFleet(options);
  const byItself = new Tally('no process ends by itself');
  const stops = new Tally('SIGTERM ends in exit code 0');
  const logs = new Tally('no error in the log');
  const warnings = new Map<string, number>();
  let slowestMs = 0;
  const past: Life[] = [];
  const lives = fleet.endpoints.map((_, index) => live(index, 0));
  const startedMs = performance.now();

  return {
    size: lives.length,
    rows: [byItself, stops, logs],
    inService: () =>
      lives.flatMap(({ isServing, number, process }, replica) =>
        isServing ? { replica, life: number, endpoint: process.address } : [],
      ),
    running: () => lives.map(({ process: { pid } }, replica) => ({ replica, pid })),
    async stop(index) {
      const over = faults.begin('stopping', index);
      await stopOne(at(index));
      await restart(index);
      over();
    },
    async kill(index) {
      const over = faults.begin('killed', index);
      at(index).isServing = false;
      await end(at(index), 'SIGKILL');
      await restart(index);
      over();
    },
    async freeze(index, until) {
      const over = faults.begin('frozen', index);
      const life = at(index);
      life.process.kill('SIGSTOP');
      life.isFrozen = true;
      await until;
      life.process.kill('SIGCONT');
      life.isFrozen = false;
      over();
    },
    jumpClock: (index) => at(index).process.kill('SIGUSR2'),
    async measure() {
      for (const life of lives) {
        readLog(life);
        if (!life.isServing || life.isFrozen || life.signal) continue;
        const level = await levelOf(life.process, performance.now() - startedMs).catch(() => undefined);
        if (level) life.levels.push(level);
      }
    },
    processes: () => [...past, ...lives],
    async close() {
      await Promise.all(lives.map(stopOne));
    },
  };

  function live(index: number, number: number): Life {
    const process = fleet.process(index);
    const state = { levels: [], signal: undefined, signalledMs: 0, isServing: true, isFrozen: false, read: 0 };
    const life: Life = { name: `replica ${index}.${number}`, number, process, ...state };
    void process.exited.then((exit) => {
      life.isServing = false;
      readLog(life, true);
      seeEnd(life, exit);
    });
    return life;
  }

  function at(index: number): Life {
    const life = lives[index];
    if (!life) throw new Error(`expected a replica below ${lives.length}, got ${index}`);
    return life;
  }

  async function end(life: Life, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    Object.assign(life, { signal, signalledMs: performance.now() });
    life.process.kill(signal);
    await life.process.exited;
  }

  async function stopOne(life: Life): Promise<void> {
    setTimeout(() => (life.isServing = false), STILL_SERVED_MS);
    await end(life, 'SIGTERM');
  }

  async function restart(index: number): Promise<void> {
    const before = at(index);
    past.push(before);
    await fleet.restart(index);
    lives[index] = live(index, before.number + 1);
  }

  function seeEnd({ name, signal, signalledMs }: Life, exit: number | NodeJS.Signals): void {
    byItself.look(signal ? undefined : `${name} ended with ${exit}`);
    if (signal !== 'SIGTERM') return;
    const tookMs = performance.now() - signalledMs;
    slowestMs = Math.max(slowestMs, tookMs);
    stops.measured = `slowest ${Math.round(slowestMs)} ms`;
    const isWell = exit === 0 && tookMs <= GONE_WITHIN_MS;
    stops.look(isWell ? undefined : `${name} ended with ${exit} after ${Math.round(tookMs)} ms`);
  }

  function readLog(life: Life, toEnd = false): void {
    const text = life.process.output.stderr.slice(life.read);
    const until = toEnd ? text.length : text.lastIndexOf('\n') + 1;
    life.read += until;
    for (const line of text.slice(0, until).split('\n')) if (line) seeLine(life.name, line);
  }

  function seeLine(name: string, line: string): void {
    const { level, msg } = parsed(line);
    logs.look(level >= ERROR_LEVEL ? `${name}: ${line.slice(0, 500)}` : undefined);
    warnings.set(msg, (warnings.get(msg) ?? 0) + 1);
    logs.measured = [...warnings].map(([text, times]) => `${times} × ${text}`).join('; ');
  }
}

/** A line that is not of petql's own log is Node.js's complaint. */
function parsed(line: string): { level: number; msg: string } {
  try {
    const { level, msg } = JSON.parse(line) as { level: unknown; msg?: unknown };
    return { level: typeof level === 'number' ? level : Infinity, msg: String(msg) };
  } catch {
    return { level: Infinity, msg: line };
  }
}

async function levelOf(process: PetqlProcess, atMs: number): Promise<Level> {
  const folder = `/proc/${process.pid}`;
  const [metrics, descriptors, status] = await Promise.all([
    metricsOf(process),
    readdir(`${folder}/fd`),
    readFile(`${folder}/status`, 'utf8'),
  ]);
  return {
    atMs,
    fds: descriptors.length,
    handles: figureOf(metrics, 'nodejs_active_resources_total'),
    heapMb: figureOf(metrics, 'nodejs_heap_size_used_bytes') / 2 ** 20,
    rssMb: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 2 ** 10,
  };
}
