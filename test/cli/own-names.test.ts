import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';

const KEY = ['--pet-api-key', 'demo-pro'];
let sandbox: Sandbox;
let petql: PetqlProcess | undefined;

beforeAll(async () => {
  sandbox = await startSandbox();
});
afterEach(async () => {
  petql?.kill('SIGTERM');
  await petql?.exited;
});
afterAll(() => sandbox.close());

/** @returns the HTTP status of a query that is sent under this name. */
async function statusUnder(host: string, path = '/graphql'): Promise<number | undefined> {
  const asked = request(new URL(path, petql?.address), {
    method: 'POST',
    headers: { host, 'content-type': 'application/json', authorization: 'Bearer demo-free' },
  });
  asked.end('{"query":"{ pets(limit: 1) { id } }"}');
  const [{ statusCode }] = (await once(asked, 'response')) as [IncomingMessage];
  return statusCode;
}

test('a page that leads its own name to this machine gets nothing for the key of the server', async () => {
  petql = await startPetql(['--pet-api-url', sandbox.url, '--port', '0', ...KEY]);
  const { port } = new URL(petql.address);
  for (const own of [`localhost:${port}`, `127.0.0.1:${port}`, 'dev.localhost'])
    expect(await statusUnder(own)).toBe(200);
  for (const strange of [`evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
    expect(await statusUnder(strange)).toBe(421);
    expect(await statusUnder(strange, '/health/live')).not.toBe(421);
    expect(await statusUnder(strange, '/health/ready?x')).not.toBe(421);
    for (const path of ['/graphql/graphiql', '/health/', '/health/x', '/health/lively', '/health/../graphql']) {
      expect(await statusUnder(strange, path)).toBe(421);
    }
  }
});

test('names of origins whose pages may ask are good', async () => {
  petql = await startPetql([
    '--pet-api-url',
    sandbox.url,
    '--port',
    '0',
    ...KEY,
    '--cors-origins',
    'https://pets.example',
  ]);
  expect(await statusUnder('pets.example')).toBe(200);
  expect(await statusUnder('Pets.Example')).toBe(200);
  expect(await statusUnder('evil.example')).toBe(421);
});

test('where other machines may reach it, proxies on this one may pass any name on', async () => {
  petql = await startPetql(['--pet-api-url', sandbox.url, '--port', '0', '--host', '0.0.0.0', ...KEY]);
  expect(await statusUnder('pets.example')).toBe(200);
});

test('where callers bring keys of their own, which no page has, any name is good', async () => {
  petql = await startPetql(['--pet-api-url', sandbox.url, '--port', '0']);
  expect(await statusUnder('pets.example')).toBe(200);
});
