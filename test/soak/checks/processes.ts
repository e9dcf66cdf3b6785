import { createTally } from '../tally.ts';
import type { Check } from './check.ts';

/** A process that is over, or was watched until the end. */
export interface ProcessEnd {
  readonly name: string;
  /** What it was asked to do; undefined where it went by itself. */
  readonly asked: 'kill' | 'stop' | undefined;
  readonly exit: number | NodeJS.Signals;
  /** From the signal to the end. */
  readonly tookMs: number;
}

export interface ProcessCheck extends Check {
  ended(end: ProcessEnd): void;
  /** A line of its standard error. */
  logged(name: string, line: string): void;
}

/** Containers are killed 10 seconds after SIGTERM. */
const GONE_WITHIN_MS = 10_000;
const ERROR_LEVEL = 50;

/** No process goes by itself, all stop when they are told to, and none says that something is wrong with petql. */
export function createProcessCheck(): ProcessCheck {
  const byItself = createTally('no process ends by itself');
  const stops = createTally('SIGTERM ends in exit code 0');
  const logs = createTally('no error in the log');
  const warnings = new Map<string, number>();
  let slowestMs = 0;
  return {
    tallies: [byItself, stops, logs],
    ended({ name, asked, exit, tookMs }) {
      if (asked === undefined) return byItself.break(`${name} ended with ${exit}`);
      byItself.ok();
      if (asked === 'kill') return;
      slowestMs = Math.max(slowestMs, tookMs);
      stops.measure(`slowest ${Math.round(slowestMs)} ms`);
      if (exit === 0 && tookMs <= GONE_WITHIN_MS) stops.ok();
      else stops.break(`${name} ended with ${exit} after ${Math.round(tookMs)} ms`);
    },
    logged(name, line) {
      const entry = parse(line);
      if (!entry || entry.level >= ERROR_LEVEL) return logs.break(`${name}: ${line.slice(0, 500)}`);
      logs.ok();
      warnings.set(entry.msg, (warnings.get(entry.msg) ?? 0) + 1);
      logs.measure([...warnings].map(([msg, times]) => `${times} × ${msg}`).join('; '));
    },
  };
}

/** Whatever is no line of petql's own log is Node.js's complaint. */
function parse(line: string): { level: number; msg: string } | undefined {
  try {
    const { level, msg } = JSON.parse(line) as { level: unknown; msg?: unknown };
    return typeof level === 'number' ? { level, msg: String(msg) } : undefined;
  } catch {
    return undefined;
  }
}
