import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';

export interface TestsOptions {
  /** Those whose names match. Default: all. */
  readonly names?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the tests of a folder. */
export async function runTests(promise: string, folder: string, options: TestsOptions = {}): Promise<Row> {
  const { names = '', env } = options;
  const root = join(import.meta.dirname, '../..');
  const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), '--config', 'test/vitest.config.ts'];
  const child = spawn(process.execPath, [...vitest, 'run', folder, '-t', names], {
    cwd: root,
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'close');
  const output = (await child.stdout.setEncoding('utf8').toArray()).join('');
  const [code] = await exited;
  const passed = Number(/^ +Tests .*?(\d+) passed/m.exec(output)?.[1] ?? 0);
  // Vitest ends in 0 where no test has such a name.
  const problems = code === 0 && passed > 0 ? [] : [output];
  return rowOf({ promise, looked: passed, problems, measured: '' });
}
