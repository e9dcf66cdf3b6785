import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../support/until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// Where npm's shell is dash, petql was that shell's child, and SIGTERM to npm ended the shell alone.
test('petql ends with the npm that started it', async () => {
  const npm = spawn('npm', ['start', '--', '--port', '0', '--sandbox'], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' },
    stdio: ['ignore', 'pipe', 'ignore'],
    // In its own process group, so that every process can be ended.
    detached: true,
  });
  onTestFinished(() => {
    try {
      process.kill(-(npm.pid ?? 0), 'SIGKILL');
    } catch {
      // Nobody is left.
    }
  });
  let stdout = '';
  npm.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  const address = () => /^curl -s (\S+) /m.exec(stdout)?.[1];
  await until(() => address() !== undefined);
  const ended = once(npm, 'exit');
  npm.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  await expect(fetch(address() ?? '')).rejects.toThrow('fetch failed');
});
