import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { createPetStore } from '../support/pet-api/pet-store.ts';
import { serve } from '../support/serve.ts';
import { overHttp, startGateway } from '../support/start-gateway.ts';

const CREATE = 'mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }';

test.each([301, 302, 303, 307, 308])('a redirect (%d) sends the API key to nobody else', async (status) => {
  const strayed: unknown[] = [];
  await using elsewhere = await serve((request, response) => {
    strayed.push(request.headers);
    response.end('[]');
  });
  const keys = { list: PLANS.free, pet: PLANS.free, create: PLANS.free };
  await using gateway = await startGateway({ through: overHttp, petApi: { keys } });
  gateway.petApi.fault = ({ path }) => ({ status, headers: { location: `${elsewhere.origin}/v1${path}` }, body: '' });
  // Each with a key of its own: where two kinds of calls fail, petql makes no third one at once.
  const documents = { list: '{ pets { id } }', pet: '{ pet(id: "404404") { id } }', create: CREATE };
  for (const [key, document] of Object.entries(documents)) {
    const headers = { authorization: `Bearer ${key}` };
    expect((await gateway.query(document, { headers })).errors).toHaveLength(1);
  }
  expect(gateway.petApi.log.length).toBeGreaterThanOrEqual(3);
  expect(strayed).toEqual([]);
});

/** Reads what comes on the connection until it has so many responses, and returns their bodies. */
async function readResponses(socket: AsyncIterable<Buffer>, count: number): Promise<string[]> {
  let text = '';
  for await (const chunk of socket) {
    text += chunk.toString('latin1');
    const bodies = [...text.matchAll(/^\{"data".*?\}(?=HTTP\/1\.1 |$)/gm)].map(([body]) => body);
    if (bodies.length === count && text.endsWith('}')) return bodies;
  }
  throw new Error(`the connection ended after ${text.length} bytes`);
}

test('each of two keys that take turns on one connection gets its own results', async () => {
  const keys = { one: { perMinute: 1_000, perDay: 10_000 }, two: { perMinute: 1_000, perDay: 10_000 } };
  const stores = new Map(
    Object.keys(keys).map((name) => [
      name,
      createPetStore({ pets: [{ id: '1', name, categoryId: '3' }], now: Date.now }),
    ]),
  );
  await using gateway = await startGateway({
    petApi: { keys, storeOf: (key) => stores.get(key) ?? createPetStore({ pets: [], now: Date.now }) },
  });
  const { hostname, port, pathname } = new URL(gateway.endpoint);
  // Some from the cache, some not.
  const documents = ['{ pets { name } }', '{ pet(id: "1") { name } rateLimit { plan } }'];
  const turns = Array.from({ length: 300 }, (_, turn) => ({
    key: turn % 2 === 0 ? 'one' : 'two',
    body: JSON.stringify({ query: documents[turn % 3 === 0 ? 1 : 0] }),
  }));
  const requests = turns.map(({ key, body }) => {
    const lines = ['host: petql', `authorization: Bearer ${key}`, 'content-type: application/json'];
    return `POST ${pathname} HTTP/1.1\r\n${lines.join('\r\n')}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  });
  const socket = connect(Number(port), hostname);
  socket.write(requests.join(''));
  const bodies = await readResponses(socket, turns.length);
  expect(bodies.map((body) => /"name":"(\w+)"/.exec(body)?.[1])).toEqual(turns.map(({ key }) => key));
  socket.destroy();
});
