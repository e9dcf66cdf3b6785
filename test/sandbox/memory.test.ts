import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { startTestSandbox } from './start-test-sandbox.ts';

/** More than the sandbox takes by itself, and less than half of what is sent. */
const HEAP_MB = 64;
const SENT_BYTES = 160_000_000;
const TIMEOUT_MS = 120_000;

const running: PetqlProcess[] = [];

afterEach(async () => {
  for (const petql of running.splice(0)) {
    petql.kill('SIGKILL');
    await petql.exited;
  }
});

test(
  'petql sandbox keeps nothing of what it was sent, whether with a key or without',
  async () => {
    const { address } = await start();
    const call = async (key: string, body: string) => {
      const headers = { authorization: `Bearer ${key}` };
      const response = await fetch(`${address}/pets`, { method: 'POST', headers, body });
      await response.arrayBuffer();
      return response.status;
    };
    expect(await sendAll(1_000_000, (body) => call('no-such-key', body))).toEqual([401]);
    expect(await sendAll(250_000, (body) => call('demo-enterprise', body))).toEqual([400]);
  },
  TIMEOUT_MS,
);

test('the sandbox closes a connection past 500, and takes another once one of them has ended', async () => {
  await using sandbox = await startTestSandbox();
  const { hostname, port } = new URL(sandbox.url);
  const open = async () => {
    const socket = connect(Number(port), hostname).on('error', () => {});
    await once(socket, 'connect');
    return socket;
  };
  const sockets: Socket[] = [];
  while (sockets.length < 500) sockets.push(await open());
  const late = await open();
  await once(late, 'close');
  expect(sockets.filter(({ closed }) => closed)).toEqual([]);
  sockets.pop()?.destroy();
  await expect.poll(() => sandbox.call('GET /pets').catch(() => undefined)).toMatchObject({ status: 200 });
  for (const socket of sockets) socket.destroy();
});

async function start(): Promise<PetqlProcess> {
  const env = { NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}` };
  const petql = await startPetql(['sandbox', '--port', '0'], { env });
  running.push(petql);
  return petql;
}

/** Sends bodies of so many bytes, eight at a time, and says how they were answered: each answer once. */
async function sendAll<Answer>(bytes: number, send: (body: string) => Promise<Answer>): Promise<Answer[]> {
  const answers = new Set<Answer>();
  const body = 'a'.repeat(bytes);
  let left = SENT_BYTES / bytes;
  const sender = async () => {
    while ((left -= 1) >= 0) answers.add(await send(body));
  };
  await Promise.all(Array.from({ length: 8 }, sender));
  return [...answers];
}
