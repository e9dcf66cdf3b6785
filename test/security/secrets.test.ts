import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { trace } from '@opentelemetry/api';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, describe, expect, test as oneTest } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import { FORBIDS, RESETS, fails, slow, tooMany } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { serve } from '../support/serve.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { createTestPetApi } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';
import { createEverything, readRedis, readStateFile } from './everything.ts';
import type { Everything } from './everything.ts';

/** Calls time out and are retried in real time, so the tests wait together. */
const test = oneTest.concurrent;

const PLAN = { perMinute: 1_000, perDay: 100_000 };
const KEY_SECRET = 'hmac-secret-c0ffee-5d1e';
const REDIS_PASSWORD = 'redis-pass-b16b00-77aa';
const PROXY_PASSWORD = 'proxy-pass-d00d1e-44cc';
const IDEMPOTENCY_KEY = 'idem-key-9d8c7b6a5f';
/** End users behind a key, over HTTP and in process. */
const VISITOR_ADDRESS = '203.0.113.77';
const VISITOR = 'visitor-5e6f7a8b9c';

/** What the run has to include. */
const CODES =
  'BAD_USER_INPUT DOWNSTREAM_SERVICE_ERROR FORBIDDEN GATEWAY_TIMEOUT GRAPHQL_PARSE_FAILED RATE_LIMITED UNAUTHENTICATED';

const FAULTS: Record<string, Fault> = {
  'a 403': FORBIDS,
  'a 404 without a body': { status: 404, body: '' },
  'a 500': fails(500),
  'a redirect': { status: 302, headers: { location: 'http://127.0.0.1:9/' } },
  'a reset': RESETS,
  'an answer cut short': { cutAfterBytes: 5 },
  'an answer that is no JSON': { body: '<html>' },
  'an answer of a wrong shape': { body: '{"id":"1"}' },
  'a timeout': slow(300),
};

/** Spans of every run, even where no create is sent. */
const SPANS = ['query', 'mutation', 'GraphQL Operation', 'GET /pets', 'GET /pets/{petId}'];

/** One key for each outcome, since a 429 or a 401 stops the later calls of its key. */
const apiKeyFor = (what: string) => `sk-caller-${what.replaceAll(/\W/g, '-')}-7f3e9a1c`;
const API_KEYS = ['success', 'a single pet', 'a 429', 'an upstream that is gone', ...Object.keys(FAULTS)].map(
  apiKeyFor,
);
const UNKNOWN_KEY = apiKeyFor('a 401');

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

beforeAll(() => {
  trace.setGlobalTracerProvider(provider);
});
afterAll(async () => {
  trace.disable();
  await provider.shutdown();
});

/** Each place in which a secret could come out was seen: the rows of the page, and all codes of errors. */
const ALL_REACHED = { hasRows: true, missing: [] };

/** Every kind of answer, over HTTP and in process, with a gateway of these options. */
async function drive(options: Partial<GatewayOptions>, meanwhile: (everything: Everything) => Promise<void>) {
  const { log, lines } = createMemoryLog();
  const everything = createEverything();
  const petApi = createTestPetApi({ keys: Object.fromEntries(API_KEYS.map((key) => [key, PLAN])) });
  const upstream = await petApi.listen();
  const gateway = createGateway({
    petApiUrl: upstream.url,
    upstreamTimeoutMs: 150,
    maxWaitMs: 150,
    admin: true,
    visitorHeader: 'x-forwarded-for',
    log,
    ...options,
  });
  await using listener = await serve(gateway.handle);
  const fine = apiKeyFor('success');
  const limited = apiKeyFor('a 429');
  let turn = 0;

  await ask('success');
  // In an outage of a key its other calls are not sent.
  await ask('a single pet', apiKeyFor('a single pet'), '{ pet(id: "404404") { id } }');
  for (const [name, fault] of Object.entries(FAULTS)) {
    petApi.fault = fault;
    await ask(name);
  }
  petApi.fault = tooMany(60);
  await ask('a 429');
  petApi.fault = undefined;
  await ask('a 429 before', limited);
  await ask('a 401');
  await ask('a 401 before', UNKNOWN_KEY);
  await ask('no GraphQL', fine, 'nonsense {');
  await ask('a key that is none', `${fine} ${limited}`);
  await ask('a wrong id', fine, `{ pet(id: "x") { id } }`);
  await meanwhile(everything);
  await ask('success again', fine);
  await upstream[Symbol.asyncDispose]();
  await ask('an upstream that is gone');
  const hasRows = await askAdmin(gateway, everything);
  await gateway.close();
  const missing = CODES.split(' ').filter((code) => everything.found({ code }).length === 0);
  everything.add('log', JSON.stringify(lines));
  const spans = exporter.getFinishedSpans();
  expect(spans.map(({ name }) => name)).toEqual(expect.arrayContaining(SPANS));
  everything.add('traces', inspect(spans, { depth: 12, maxArrayLength: null }));
  everything.add('gateway', inspect({ ...gateway, schema: undefined }, { depth: 8, showHidden: true }));
  return { everything, reached: { hasRows, missing }, host: new URL(upstream.url).host };

  async function ask(what: string, apiKey = apiKeyFor(what), document = operation((turn += 1))): Promise<void> {
    for (const query of [
      document,
      document.replace(/^mutation .*/s, '{ pets(limit: 1) { id } pet(id: "5") { id } }'),
    ]) {
      const response = await fetch(`${listener.origin}/graphql`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${apiKey}`,
          'x-forwarded-for': VISITOR_ADDRESS,
        },
        body: JSON.stringify({ query }),
      });
      everything.add(`HTTP after ${what}`, `${JSON.stringify([...response.headers])} ${await response.text()}`);
      const result: unknown = await gateway
        .execute({ document: query, apiKey, visitor: VISITOR })
        .catch((error: unknown) => error);
      everything.add(
        `execute after ${what}`,
        `${inspect(result, { depth: 12, showHidden: true })} ${JSON.stringify(result)}`,
      );
    }
  }
}

/** What those see who run the gateway: metrics and the page. @returns whether the page has rows. */
async function askAdmin({ admin }: Gateway, everything: Everything): Promise<boolean> {
  let hasRows = false;
  if (!admin) throw new Error('expected a gateway with the option admin');
  await using listener = await serve(admin);
  for (const path of ['/metrics', '/quota']) {
    const text = await (await fetch(`${listener.origin}${path}`)).text();
    expect(text).toMatch(/petql/);
    hasRows ||= text.includes('<tbody><tr>');
    everything.add(path, text);
  }
  return hasRows;
}

/** A new key each time, so that each is sent. */
function operation(turn: number): string {
  const input = `name: "Pet", categoryId: 1, idempotencyKey: "${IDEMPOTENCY_KEY}-${turn}"`;
  return `mutation { createPet(input: { ${input} }) { pet { id } userErrors { code message } } }`;
}

function secrets(host: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    ...Object.fromEntries([...API_KEYS, UNKNOWN_KEY].map((key) => [`the API key ${key}`, key])),
    'the key secret': KEY_SECRET,
    'the idempotency key': IDEMPOTENCY_KEY,
    'the visitor’s address': VISITOR_ADDRESS,
    'the visitor': VISITOR,
    'the upstream’s address': host,
    ...more,
  };
}

test('with a state file, no secret comes out anywhere', async ({ onTestFinished }) => {
  const folder = await mkdtemp(join(tmpdir(), 'petql-secrets-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, 'state.db');
  const { everything, reached, host } = await drive({ stateFile: path, keySecret: KEY_SECRET }, (found) =>
    readStateFile(path, found),
  );
  await readStateFile(path, everything);
  expect(reached).toEqual(ALL_REACHED);
  expect(everything.places).toEqual(expect.arrayContaining(['state file', 'log', 'HTTP after a 429']));
  expect(everything.found(secrets(host))).toEqual([]);
});

test.each([
  ['accepts', PROXY_PASSWORD],
  ['rejects', `${PROXY_PASSWORD}-other`],
])('with a proxy that %s its password, no secret comes out anywhere', async (_name, expected) => {
  await using proxy = await startHttpProxy(`petql:${expected}`);
  const options = { proxy: proxy.origin.replace('//', `//petql:${PROXY_PASSWORD}@`) };
  const { everything, host } = await drive(options, () => Promise.resolve());
  expect(proxy.requests.length).toBeGreaterThan(0);
  const more = { 'the proxy’s password': PROXY_PASSWORD, 'the proxy’s address': new URL(proxy.origin).host };
  expect(everything.found(secrets(host, more))).toEqual([]);
});

describe.skipIf(!redisIsHere)('with Redis', () => {
  async function startRedisWithUser() {
    const redis = await startRedis();
    await redis.command('ACL', 'SETUSER', 'petql', 'on', `>${REDIS_PASSWORD}`, '~*', '&*', '+@all');
    const urlWith = (password: string) => redis.url.replace('//', `//petql:${password}@`);
    return { ...redis, urlWith, [Symbol.asyncDispose]: redis.close };
  }

  test.each([
    ['a key secret', { keySecret: KEY_SECRET }],
    ['none', {}],
  ])('and %s, no secret comes out anywhere', async (_name, options) => {
    await using redis = await startRedisWithUser();
    const { everything, reached, host } = await drive(
      { redisUrl: redis.urlWith(REDIS_PASSWORD), ...options },
      async (found) => {
        await until(async () => (await redis.command('KEYS', '*')).includes('petql:record:'));
        await readRedis(redis.url, found);
        await redis.kill();
      },
    );
    expect(reached).toEqual(ALL_REACHED);
    expect(everything.places.some((place) => place.startsWith('Redis GET petql:record:'))).toBe(true);
    expect(everything.found(secrets(host, { 'Redis’s password': REDIS_PASSWORD }))).toEqual([]);
  });

  test('and a wrong password, no secret comes out anywhere', async () => {
    await using redis = await startRedisWithUser();
    const wrong = `${REDIS_PASSWORD}-wrong`;
    const options = { redisUrl: redis.urlWith(wrong), keySecret: KEY_SECRET };
    const { everything, host } = await drive(options, () => Promise.resolve());
    expect(everything.found(secrets(host, { 'Redis’s password': wrong }))).toEqual([]);
  });
});

test('what is looked for would be found', () => {
  const everything = createEverything();
  const key = apiKeyFor('success');
  everything.add('a log', JSON.stringify({ authorization: `Bearer ${key}` }));
  everything.add('a header', Buffer.from(`Bearer ${key}, and more`).toString('base64'));
  everything.add('an error', inspect(new Error('connect 127.0.0.1:9')));
  expect(everything.found(secrets('127.0.0.1:9'))).toEqual([
    `a log: the API key ${key}, as it is`,
    `a header: the API key ${key}, in base64 behind Bearer`,
    `a log: the API key ${key}, percent-encoded`,
    'an error: the upstream’s address, as it is',
  ]);
});
