import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../src/server/listener.ts';
import type { RequestHandler } from '../../src/server/listener.ts';
import { createBodyReader } from '../../src/server/request-body.ts';
import { collectGarbage } from '../support/collect-garbage.ts';

const CONNECTIONS = 20;
const BODY_BYTES = 200_000;
const ASKED = `POST / HTTP/1.1\r\nHost: petql\r\nContent-Length: ${BODY_BYTES}\r\n\r\n${' '.repeat(BODY_BYTES)}`;

/** Has each connection send a request, and gives how many of them were answered. */
async function start(handler: RequestHandler) {
  const listener = await listen(handler, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listener.stop(0));
  const { hostname, port } = new URL(listener.origin);
  const come = { answers: 0 };
  for (let count = 0; count < CONNECTIONS; count += 1) {
    const socket = connect(Number(port), hostname).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    socket.on('data', () => (come.answers += 1)).write(ASKED);
  }
  return come;
}

function heldOf(refs: readonly WeakRef<object>[]): number {
  collectGarbage();
  return refs.filter((ref) => ref.deref() !== undefined).length;
}

// A connection is kept for a minute, and there may be thousands: each held its last request with all of its headers.
test('a connection that idles holds nothing of its last request', async () => {
  const requests: WeakRef<object>[] = [];
  const come = await start((request, response) => {
    requests.push(new WeakRef(request));
    request.resume().once('end', () => response.end('.'));
  });
  await expect.poll(() => come.answers).toBe(CONNECTIONS);
  await expect.poll(() => heldOf(requests)).toBe(0);
});

// A request is held while its operation waits for the service, and with it what listens to it.
test('a request that waits for its answer holds nothing of a body that was used', async () => {
  const bodies: WeakRef<object>[] = [];
  const readBody = createBodyReader({ maxBodyBytes: BODY_BYTES });
  await start((request) => readBody(request, (body) => 'bytes' in body && bodies.push(new WeakRef(body.bytes.buffer))));
  await expect.poll(() => bodies.length).toBe(CONNECTIONS);
  await expect.poll(() => heldOf(bodies)).toBe(0);
});
