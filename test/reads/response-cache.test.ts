import { tracingChannel } from 'node:diagnostics_channel';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { graphqlRequest, startEmbedded } from '../support/start-gateway.ts';
import type { EmbeddedGateway } from '../support/start-gateway.ts';

const LIST = '{ pets(limit: 2) { id name } }';
const apiKey = 'demo-free';

/** graphql-js publishes each execution; a cached response needs none. */
const channel = tracingChannel('graphql:execute');
const listener = { start: () => (executions += 1), end() {}, asyncStart() {}, asyncEnd() {}, error() {} };
let executions = 0;

beforeEach(() => channel.subscribe(listener));
afterEach(() => channel.unsubscribe(listener));

/** Counts the executions while this runs. */
async function executed(work: () => Promise<unknown>): Promise<number> {
  const before = executions;
  await work();
  return executions - before;
}

interface Answer {
  readonly headers: Headers;
  readonly data?: unknown;
  readonly extensions?: any;
}

async function ask(gateway: EmbeddedGateway, params: object, headers?: Record<string, string>): Promise<Answer> {
  const response = await gateway.fetch(graphqlRequest(params, headers));
  return { headers: response.headers, ...((await response.json()) as object) };
}

describe('a response from the cache', () => {
  test('is served for the same request again, by fetch and in process', async () => {
    await using gateway = await startEmbedded({ maxAgeMs: 60_000 });
    const first = await ask(gateway, { query: LIST });
    expect(await executed(() => ask(gateway, { query: LIST }))).toBe(0);
    const again = await ask(gateway, { query: LIST });
    expect(again.data).toEqual(first.data);
    expect(again.extensions.petql).toMatchObject({ upstreamCalls: 0, savedCalls: 1 });
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
    const inProcess = () => gateway.execute({ document: LIST, apiKey });
    expect(await executed(inProcess)).toBe(1);
    expect(await executed(inProcess)).toBe(0);
    expect((await inProcess()).data).toEqual(first.data);
  });

  test('is not served to another caller, for another Accept or after a write', async () => {
    await using gateway = await startEmbedded({ maxAgeMs: 60_000 });
    await ask(gateway, { query: LIST });
    for (const headers of [
      { authorization: 'Bearer demo-pro' },
      { authorization: `Bearer ${apiKey}`, accept: 'application/graphql-response+json' },
      { authorization: `Bearer ${apiKey}`, 'cache-control': 'no-cache' },
    ]) {
      expect(await executed(() => ask(gateway, { query: LIST }, headers))).toBe(1);
    }
    const query = 'mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { id } } }';
    expect(await executed(() => ask(gateway, { query }))).toBe(1);
    expect(await executed(() => ask(gateway, { query }))).toBe(1);
    expect(await executed(() => ask(gateway, { query: LIST }))).toBe(1);
  });

  test.each<[string, (gateway: EmbeddedGateway, key: string) => Promise<unknown>]>([
    ['fetch', (gateway, key) => ask(gateway, { query: LIST }, { authorization: `Bearer ${key}` })],
    ['execute', (gateway, key) => gateway.execute({ document: LIST, apiKey: key })],
  ])('is kept for each of two API keys that take turns, by %s', async (_name, read) => {
    await using gateway = await startEmbedded({ maxAgeMs: 60_000 });
    const inTurn = async () => {
      for (const key of ['demo-free', 'demo-pro']) await read(gateway, key);
    };
    await inTurn();
    expect(await executed(inTurn)).toBe(0);
  });

  test('survives a refresh that changes nothing', async () => {
    let aheadMs = 0;
    const clock = { now: Date.now, elapsed: () => performance.now() + aheadMs };
    await using gateway = await startEmbedded({ clock, maxAgeMs: 5_000 });
    await ask(gateway, { query: LIST });
    aheadMs = 10_000;
    await ask(gateway, { query: '{ pets(limit: 3) { id } }' });
    expect(gateway.petApi.log).toHaveLength(2);
    expect(await executed(() => ask(gateway, { query: LIST }))).toBe(0);
  });

  test('may be stale, with its age and reason', async () => {
    let aheadMs = 0;
    const clock = { now: Date.now, elapsed: () => performance.now() + aheadMs };
    const keys = { [apiKey]: { perMinute: 60, perDay: 5 } };
    await using gateway = await startEmbedded({ clock, maxAgeMs: 1_000, plan: '60/5' }, { keys });
    await ask(gateway, { query: LIST });
    aheadMs = 5_000;
    await ask(gateway, { query: LIST });
    const stale = async () => {
      const { extensions, headers } = await ask(gateway, { query: LIST });
      expect(extensions.petql).toMatchObject({ upstreamCalls: 0, staleReason: 'SAVING_QUOTA' });
      expect(Number(headers.get('age'))).toBeGreaterThanOrEqual(5);
    };
    expect(await executed(stale)).toBe(0);
  });

  test('is served where only trusted documents run', async () => {
    const trustedDocuments = { a: LIST };
    await using gateway = await startEmbedded({ maxAgeMs: 60_000, trustedDocuments, requireTrustedDocuments: true });
    const documentId = `sha256:${createHash('sha256').update(LIST).digest('hex')}`;
    await ask(gateway, { documentId });
    expect(await executed(() => ask(gateway, { documentId }))).toBe(0);
  });

  test.each([
    ['a quota', '{ pets(limit: 1) { id } rateLimit { plan } }', {}],
    ['an error', '{ pets(limit: 1) { id } pet(id: "x") { id } }', {}],
    ['a dry run', LIST, { 'petql-dry-run': '1' }],
    ['no pets', '{ __schema { queryType { name } } }', {}],
  ])('is never one with %s', async (_name, query, headers) => {
    await using gateway = await startEmbedded({ maxAgeMs: 60_000 });
    const again = () => ask(gateway, { query }, { authorization: `Bearer ${apiKey}`, ...headers });
    await again();
    expect(await executed(again)).toBeGreaterThan(0);
  });

  test('is counted, logged and traced once', async () => {
    await using gateway = await startEmbedded({ maxAgeMs: 60_000 });
    await ask(gateway, { query: LIST });
    const logged = () => gateway.logLines.filter(({ msg }) => msg === 'operation').length;
    const before = logged();
    expect(await executed(() => ask(gateway, { query: LIST }))).toBe(0);
    expect(logged()).toBe(before + 1);
  });
});
