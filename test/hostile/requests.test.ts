import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** What comes back to lines of headers and a query, with the connection at its end. */
async function send(lines: readonly string[], query = '{ pets(limit: 1) { id } }'): Promise<string> {
  const body = JSON.stringify({ query });
  const { hostname, port } = new URL(gateway.endpoint);
  const socket = connect(Number(port), hostname);
  const head = [
    'POST /graphql HTTP/1.1',
    'Host: petql',
    'Connection: close',
    `Content-Length: ${body.length}`,
    ...lines,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  return Buffer.concat(await socket.toArray()).toString();
}

const JSON_TYPE = 'Content-Type: application/json';
const KEY = 'Authorization: Bearer demo-free';

test.each([
  ['with an empty one behind it', [KEY, 'Authorization:']],
  ['with an empty one before it', ['Authorization: ', KEY]],
  ['twice the same', [KEY, KEY]],
  ['in two parts', ['Authorization: Bearer', 'Authorization: demo-free']],
  ['a scheme and nothing', ['Authorization: Bearer', 'Authorization:']],
])('of several Authorization headers none counts, and nothing is called: %s', async (_name, lines) => {
  const before = gateway.sandbox.calls.length;
  // Both ways of the gateway: the first asks for an answer, the other for its price.
  expect(await send([JSON_TYPE, ...lines])).toMatch(/^HTTP\/1\.1 401 .*"code":"UNAUTHENTICATED"/s);
  expect(await send([JSON_TYPE, 'petql-dry-run: 1', ...lines])).toContain('"code":"UNAUTHENTICATED"');
  expect(gateway.sandbox.calls).toHaveLength(before);
});

test.each([
  'text/html',
  'text/event-stream',
  'multipart/mixed',
  'image/*',
  'application/json; charset=latin1',
  'x',
  'application/json;q=0',
  'text/html, application/* ; q = 0.000, */*;Q=0',
])('whoever accepts nothing but %s is told so before anything is called', async (accept) => {
  const before = gateway.sandbox.calls.length;
  const mutation = 'mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }';
  const answer = await send([JSON_TYPE, KEY, `Accept: ${accept}`], mutation);
  expect(answer).toMatch(/^HTTP\/1\.1 406 .*"code":"BAD_USER_INPUT"/s);
  expect(gateway.sandbox.calls).toHaveLength(before);
});

test.each([
  '*/*',
  'application/*',
  '*/json',
  'text/html, */*;q=0.1',
  'text/event-stream,application/json',
  'text/html;q=0, application/json;q=0.001',
  '',
])('whoever accepts %j gets JSON, in one piece', async (accept) => {
  const answer = await send([JSON_TYPE, KEY, `Accept: ${accept}`]);
  expect(answer).toMatch(/^HTTP\/1\.1 200 .*\ncontent-type: application\/json.*"data"/is);
  expect(answer).not.toMatch(/^transfer-encoding/im);
});
