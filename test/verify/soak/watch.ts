import { readFile, readdir } from 'node:fs/promises';
import { figureOf, metricsOf } from '../../support/fleet.ts';
import type { Replica } from '../../support/fleet.ts';
import { Tally } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';
import { checkLevels } from './levels.ts';
import type { Level } from './levels.ts';

/** Watches processes as an operator does: how they end, what they log, and how much they hold. */
export interface Watch {
  /** Follows a process to its end. */
  readonly follow: (replica: Replica) => void;
  /** Notes how much each of them holds now. */
  readonly measure: (replicas: readonly Replica[]) => Promise<void>;
  /** Once all have ended. */
  readonly rows: () => Row[];
}

/** Containers are killed 10 seconds after SIGTERM. */
const GONE_WITHIN_MS = 10_000;
/** A line of any other level, or of none, is an error. */
const QUIET_LEVELS: ReadonlySet<unknown> = new Set(['debug', 'info', 'warn']);

export function createWatch(): Watch {
  const byItself = new Tally('no process ends by itself');
  const stops = new Tally('SIGTERM ends in exit code 0');
  const logs = new Tally('no error in the log');
  const levels = new Map<string, Level[]>();
  const messages = new Map<string, number>();
  let slowestMs = 0;

  return {
    follow(replica) {
      void replica.process.exited.then((exit) => {
        seeEnd(replica, exit);
        for (const line of replica.process.output.stderr.split('\n')) if (line) seeLine(nameOf(replica), line);
      });
    },
    async measure(replicas) {
      for (const replica of replicas.filter(({ isServing, isFrozen, ending }) => isServing && !isFrozen && !ending)) {
        const level = await levelOf(replica).catch(() => undefined);
        const name = nameOf(replica);
        if (level) levels.set(name, [...(levels.get(name) ?? []), level]);
      }
    },
    rows() {
      stops.measured = `slowest ${Math.round(slowestMs)} ms`;
      logs.measured = [...messages].map(([text, times]) => `${times} × ${text}`).join('; ');
      return [...checkLevels(levels), byItself, stops, logs];
    },
  };

  function seeEnd({ ending, ...replica }: Replica, exit: number | NodeJS.Signals): void {
    byItself.look(ending ? undefined : `${nameOf(replica)} ended with ${exit}`);
    if (ending?.signal !== 'SIGTERM') return;
    const tookMs = performance.now() - ending.atMs;
    slowestMs = Math.max(slowestMs, tookMs);
    const isWell = exit === 0 && tookMs <= GONE_WITHIN_MS;
    stops.look(isWell ? undefined : `${nameOf(replica)} ended with ${exit} after ${Math.round(tookMs)} ms`);
  }

  function seeLine(name: string, line: string): void {
    const { isQuiet, msg } = parsed(line);
    logs.look(isQuiet ? undefined : `${name}: ${line.slice(0, 500)}`);
    messages.set(msg, (messages.get(msg) ?? 0) + 1);
  }
}

function nameOf({ index, life }: Pick<Replica, 'index' | 'life'>): string {
  return `replica ${index}.${life}`;
}

/** A line that is not of petql's own log is Node.js's complaint. */
function parsed(line: string): { isQuiet: boolean; msg: string } {
  try {
    const { level, msg } = JSON.parse(line) as { level: unknown; msg?: unknown };
    return { isQuiet: QUIET_LEVELS.has(level), msg: String(msg) };
  } catch {
    return { isQuiet: false, msg: line };
  }
}

async function levelOf({ process }: Replica): Promise<Level> {
  const folder = `/proc/${process.pid}`;
  const [metrics, descriptors, status] = await Promise.all([
    metricsOf(process),
    readdir(`${folder}/fd`),
    readFile(`${folder}/status`, 'utf8'),
  ]);
  return {
    atMs: performance.now(),
    fds: descriptors.length,
    handles: figureOf(metrics, 'nodejs_active_resources_total'),
    heapMb: figureOf(metrics, 'nodejs_heap_size_used_bytes') / 2 ** 20,
    rssMb: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 2 ** 10,
  };
}
