import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { until } from '../support/until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const START = fileURLToPath(new URL('../../src/program/start.js', import.meta.url));
const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' };

// Where npm's shell is dash, petql is that shell's child, and SIGTERM to npm ends the shell alone.
test('petql stops with the npm that started it', async () => {
  const npm = spawn('npm', ['start', '--', '--port', '0', '--sandbox'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
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
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const address = () => /^curl -s (\S+) /m.exec(output)?.[1];
  await until(() => address() !== undefined);
  const ended = once(npm, 'exit');
  npm.kill('SIGTERM');
  await ended;
  await until(() => output.includes('"msg":"stopped"'));
  await expect(fetch(address() ?? '')).rejects.toThrow('fetch failed');
});

// Such as Node.js 20, where npm was told to run no scripts, or to leave out dev packages, or its Node.js needs another libc.
test('a Node.js that cannot read TypeScript gets one line, with what installs another', async () => {
  const started = promisify(execFile)(process.execPath, ['--no-strip-types', START, '--port', '0'], { env });
  await expect(started).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /^petql needs Node\.js 24\.12 or later, and this is \d+\.\d+\.\d+\. npm ci installs one .*--ignore-scripts=false\. On Alpine, .*\n$/,
    ),
  });
});

test('what npm runs needs no shell of its own: each script is a program with its arguments', async () => {
  const programs = Object.values(packageJson.scripts).flatMap((script) => script.split('&&'));
  for (const program of programs) {
    expect(program.trim()).toMatch(/^(?:node|npm|oxlint|oxfmt|tsc|vitest)(?: |$)/);
    expect(program.replaceAll(/"[^"]*"/g, '')).not.toMatch(/[$'`;|<>]/);
  }
  // Only the image, which has a shell, starts with one.
  expect(await readFile(START, 'utf8')).not.toContain('/bin/sh');
});
