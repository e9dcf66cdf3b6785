import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway } from '../../src/index.ts';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { serve } from '../support/serve.ts';
import type { Served } from '../support/serve.ts';
import { CLIENTS, runSnippet } from './snippets.ts';

const EXHAUSTED = 'exhausted';
const RETRY_AFTER_MS = 40;
const NOON_MS = Date.UTC(2027, 0, 1, 12);

let sandbox: Sandbox;
let gateway: Gateway;
let server: Served;
/** What the clock of the gateway and of the sandbox is ahead. */
let aheadMs = 0;
/** When each request came, by `performance.now()`. */
let cameAtMs: number[] = [];
let printed: unknown[] = [];

const clock = {
  now: () => NOON_MS + performance.now() + aheadMs,
  elapsed: () => performance.now() + aheadMs,
};

beforeEach(async () => {
  cameAtMs = [];
  printed = [];
  aheadMs = 0;
  sandbox = createSandbox({ clock, keys: { [EXHAUSTED]: { perMinute: 1, perDay: 50 } } });
  gateway = createGateway({ ...sandbox.gatewayOptions, clock });
  server = await serve((request, response) => {
    cameAtMs.push(performance.now());
    void text(request)
      .then((body) => answerTo(body, request.headers.authorization ?? ''))
      .then((answer) => response.writeHead(200, { 'content-type': 'application/json' }).end(answer));
  });
});
afterEach(async () => {
  await server[Symbol.asyncDispose]();
  await gateway.close();
  await sandbox.close();
});

const run = (name: string, apiKey: string) =>
  runSnippet(name, { origin: server.origin, apiKey, print: (...values) => printed.push(...values) });

describe.each(CLIENTS)('with %s', (name) => {
  test('lists, creates, and retries after retryAfterMs, with a notice', async () => {
    await gateway.execute({ document: '{ pets { id } }', apiKey: EXHAUSTED });
    await run(name, 'demo-pro');
    const pets = printed.find((value) => Array.isArray(value));
    expect(pets).toHaveLength(20);
    expect(pets?.[0]).toMatchObject({ id: '1', name: 'Ada' });
    expect(printed).toContainEqual(
      expect.objectContaining({ pet: expect.objectContaining({ id: expect.any(String) }), userErrors: [] }),
    );
    expect(noticesIn(printed)).toEqual([expect.stringMatching(/^Please come back at /)]);
    const [firstMs = 0, secondMs = 0, ...more] = cameAtMs;
    expect(secondMs - firstMs).toBeGreaterThanOrEqual(RETRY_AFTER_MS - 1);
    expect(more).toHaveLength(1);
  });

  test('says how old stale data is', async () => {
    const document = '{ pets(status: AVAILABLE) { id name } all: pets { id } }';
    await gateway.execute({ document, apiKey: 'demo-flaky' });
    aheadMs = 175_000;
    await run(name, 'demo-flaky');
    expect(printed.find((value) => Array.isArray(value))).toHaveLength(20);
    expect(noticesIn(printed)[0]).toBe('3 min old');
  });

  test('says when to come back once the day is used up', async () => {
    const document = '{ a: pets { id } p: pets(status: PENDING) { id } s: pets(status: SOLD) { id } }';
    await gateway.execute({ document, apiKey: 'demo-used-up' });
    await run(name, 'demo-used-up');
    const tomorrow = new Date(Date.UTC(2027, 0, 2)).toLocaleString().slice(0, -6);
    expect(noticesIn(printed)[0]).toMatch(`Please come back at ${tomorrow}`);
    expect(printed.filter((value) => Array.isArray(value))).toEqual([]);
    expect(sandbox.calls).toHaveLength(3);
  });

  test('says that a create may have worked, and sends it once', async () => {
    await run(name, 'demo-lost');
    expect(noticesIn(printed)).toEqual(['It may have worked. Please look before you try again.']);
    expect(sandbox.calls.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });
});

function noticesIn(values: readonly unknown[]): readonly string[] {
  return values.filter((value) => typeof value === 'string');
}

/** petql's own response. The first one of demo-pro says that the minute is used up, and to wait for a moment only. */
async function answerTo(body: string, authorization: string): Promise<string> {
  const isFirst = authorization === 'Bearer demo-pro' && cameAtMs.length === 1;
  const exhausted = { authorization: `Bearer ${EXHAUSTED}`, 'cache-control': 'no-cache', prefer: 'wait=0' };
  const headers = { 'content-type': 'application/json', ...(isFirst ? exhausted : { authorization }) };
  const response = await gateway.fetch(new Request('http://localhost/graphql', { method: 'POST', headers, body }));
  const answer = await response.text();
  if (!isFirst) return answer;
  expect(answer).toContain('"code":"RATE_LIMITED"');
  return answer.replace(/"retryAfterMs":\d+/, `"retryAfterMs":${RETRY_AFTER_MS}`);
}
