import { pino } from 'pino';
import type { Log } from '../../src/index.ts';

export type LogLine = Readonly<Record<string, any>>;

/** A log whose lines a test can read. */
export function createMemoryLog(): { log: Log; lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line)) });
  return { log, lines };
}
