import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';

const ROOT = join(import.meta.dirname, '../..');
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs');

/**
 * Runs tests.
 *
 * @param which files, folders, and `--project=NAME`.
 */
export async function runTests(
  promise: string,
  which: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<readonly Row[]> {
  const child = spawn(process.execPath, [VITEST, '--config', 'test/vitest.config.ts', 'run', ...which], {
    cwd: ROOT,
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'close');
  const output = (await child.stdout.setEncoding('utf8').toArray()).join('');
  const [code] = await exited;
  const looked = Number(/^ +Tests .*?(\d+) passed/m.exec(output)?.[1] ?? 0);
  return [rowOf({ promise, looked, problems: code === 0 && looked > 0 ? [] : [output], measured: '' })];
}
