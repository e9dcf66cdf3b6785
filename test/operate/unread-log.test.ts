import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { MAIN } from '../support/run-petql.ts';
import { until } from '../support/until.ts';

/** petql with a standard error that nobody reads. */
async function startUnread() {
  const args = [MAIN, '--port', '0', '--log-level', 'debug'];
  const env = { PATH: process.env['PATH'] ?? '' };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false })) {
    output += String(chunk);
    if (output.includes('curl -s')) break;
  }
  const address = new URL(/^curl -s (\S+) /m.exec(output)?.[1] ?? '');
  const exited = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
  return { child, address, exited };
}

/** Makes so many long log lines: one for each operation, all on one connection. */
async function logLines({ hostname, port }: URL, count: number): Promise<void> {
  const body = `{"query":"query ${'x'.repeat(64)} { __typename }"}`;
  const id = `X-Request-Id: ${'x'.repeat(128)}\r\n`;
  const head = `POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${id}`;
  const request = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  const socket = connect(Number(port), hostname);
  let answered = 0;
  socket.on('data', (bytes) => (answered += bytes.toString('latin1').split('HTTP/1.1 200').length - 1));
  for (let sent = 0; sent < count; sent += 100) {
    socket.write(request.repeat(100));
    await until(() => answered >= sent + 90);
  }
  await until(() => answered >= count - 1);
  socket.destroy();
}

test('a log that nobody reads blocks nothing, and says later how many lines were dropped', async () => {
  const { child, address, exited } = await startUnread();
  // A pipe holds some hundred lines, and petql two or three thousand.
  await logLines(address, 3_600);
  expect((await fetch(new URL('/health/live', address))).status).toBe(200);
  let read = '';
  const ended = once(child.stderr, 'end');
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (read += chunk));
  await until(() => read.includes('"dropped":'));
  await logLines(address, 100);
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
  await ended;
  const lines = read
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { dropped?: number; msg: string })
    .filter(({ msg }) => msg === 'operation' || msg.startsWith('log lines were dropped'));
  const at = lines.findIndex(({ dropped }) => dropped !== undefined);
  expect(at).toBeGreaterThan(1_000);
  expect(lines.slice(at + 1)).toHaveLength(100);
  expect(lines.length - 1 + (lines[at]?.dropped ?? 0)).toBe(3_700);
});

test('a signal ends petql while lines wait for a reader', async () => {
  const { child, address, exited } = await startUnread();
  // More than a pipe holds, and less than petql keeps.
  await logLines(address, 600);
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
});
