import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { MAIN } from '../support/run-petql.ts';
import { until } from '../support/until.ts';

/** Operations in a request; each of them is a line of the log. */
const BATCH = 100;
/** A pipe holds some hundred lines, and what petql keeps of them some thousand. */
const MORE_THAN_FIT = 60;
const TIMEOUT_MS = 60_000;

const running: ChildProcessByStdio<null, Readable, Readable>[] = [];

afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

/** petql with a standard error that nobody reads. */
async function startUnread() {
  const args = [MAIN, '--port', '0', '--log-level', 'debug', '--max-batch', String(BATCH)];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  let said = '';
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    said += String(chunk);
    if (said.includes('curl -s')) break;
  }
  const [, address = ''] = /^curl -s (\S+) /m.exec(said) ?? [];
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
  return { child, address, exited };
}

/** As many lines. */
async function logLines(address: string, requests: number): Promise<void> {
  const body = JSON.stringify(Array.from({ length: BATCH }, () => ({ query: '{ __typename }' })));
  for (let sent = 0; sent < requests; sent += 1) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(address, { method: 'POST', headers, body, signal: AbortSignal.timeout(10_000) });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
  }
}

test(
  'a standard error that nobody reads keeps petql neither from answering nor from stopping',
  async () => {
    const { child, address, exited } = await startUnread();
    await logLines(address, MORE_THAN_FIT);
    expect((await fetch(new URL('/health/live', address))).status).toBe(200);
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  'once it is read again, what came first is there, how many lines were dropped, and then each line again',
  async () => {
    const { child, address, exited } = await startUnread();
    await logLines(address, MORE_THAN_FIT);
    let read = '';
    const ended = once(child.stderr, 'end');
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (read += chunk));
    await until(() => read.includes('"dropped":'));
    await logLines(address, 1);
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
    await ended;
    const lines = read
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { dropped?: number });
    const at = lines.findIndex(({ dropped }) => dropped !== undefined);
    expect(at).toBeGreaterThan(1_000);
    expect(lines.slice(at + 1)).toHaveLength(BATCH);
    expect(lines.length - 1 + (lines[at]?.dropped ?? 0)).toBe((MORE_THAN_FIT + 1) * BATCH);
  },
  TIMEOUT_MS,
);

test(
  'what waits for a reader who is only late is out before petql ends',
  async () => {
    const { child, address, exited } = await startUnread();
    // More than a pipe holds, and less than is kept.
    await logLines(address, 15);
    child.kill('SIGTERM');
    const lines = (await text(child.stderr)).trimEnd().split('\n');
    expect(await exited).toBe(0);
    expect(lines).toHaveLength(15 * BATCH);
  },
  TIMEOUT_MS,
);
