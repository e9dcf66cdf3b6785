import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GatewayOptions } from '../../src/index.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { FORBIDS, HANGS, REFUSES, during, fails, on, slow, times, tooMany } from '../support/pet-api/fault.ts';
import type { FaultRule } from '../support/pet-api/fault.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import type { EmbeddedGateway } from '../support/start-gateway.ts';
import { startVirtualTime } from '../../src/program/simulate/virtual-time.ts';
import type { VirtualTime } from '../../src/program/simulate/virtual-time.ts';

const LATENCY_MS = 200;
const SMALL = 90;
const LARGE = 400;
const ALL = '{ pets { id } }';
const EVERYTHING =
  '{ pets { id } a: pets(status: AVAILABLE) { id } p: pets(status: PENDING) { id } s: pets(status: SOLD) { id } }';

let time: VirtualTime;
let gateway: EmbeddedGateway | undefined;

beforeEach(async () => {
  // Early in a minute, so that a minute is enough for a test.
  time = await startVirtualTime(Date.parse('2026-11-21T12:00:01Z'));
});
afterEach(async () => {
  if (gateway) await until(gateway.close());
  gateway = undefined;
  time[Symbol.dispose]();
});

/** Lets time pass until the promise settles. */
async function until<T>(promise: Promise<T>): Promise<T> {
  let isOver = false;
  const end = () => void (isOver = true);
  promise.then(end, end);
  await time.run(() => isOver);
  return promise;
}

const pass = (ms: number) => until(new Promise<void>((resolve) => void setTimeout(resolve, ms)));

/** A pet API with this many pets whose calls take 200 ms, and a petql that knows nothing of it. */
async function over(pets: number, options: Partial<GatewayOptions> = {}) {
  const half = LATENCY_MS / 2;
  gateway = await startEmbedded(options, { pets: petSeeds(pets), latencyMs: [half, half] });
  const { petApi, execute } = gateway;

  return {
    petApi,
    send,
    ask: (document: string, more?: SendOptions) => until(send(document, more)),
    /** What was called for since the last time. */
    calls: () => petApi.log.splice(0).map(({ target }) => target),
  };

  async function send(document: string, { apiKey = 'demo-business', ...more }: SendOptions = {}) {
    const startedAtMs = Date.now();
    const { data, errors = [], extensions } = await execute({ document, apiKey, ...more });
    return {
      data: data as Record<string, any>,
      codes: errors.map((error) => `${String(error.path?.[0])} ${error.extensions?.code}`),
      usage: extensions?.['petql'] as { upstreamCalls: number; oldestAgeMs?: number; staleReason?: string },
      tookMs: Date.now() - startedAtMs,
    };
  }
}

interface SendOptions {
  readonly apiKey?: string;
  readonly cacheControl?: string;
  readonly maxWaitMs?: number;
}

const idsFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index);
const page = (ids: readonly number[]) => `{ petsById(ids: ${JSON.stringify(ids.map(String))}) { id } }`;

describe('a failed call concerns only the reads that need it', () => {
  test.each<[string, FaultRule]>([
    ['a 503', fails()],
    ['a 403', FORBIDS],
    ['silence', HANGS],
    ['a broken contract', { body: '[{"id":1}]' }],
  ])('in a large store, where the list of all is answered by %s', async (_what, fault) => {
    const { petApi, ask, send, calls } = await over(LARGE, { maxStaleMs: 0 });
    await ask(EVERYTHING);
    await pass(2_000);
    calls();
    petApi.fault = on('all', fault);
    const failing = send('{ pets { id } sold: pets(status: SOLD) { id } }');
    const others = [send('{ pet(id: 350) { id } }'), send('{ pets(status: PENDING) { id } }')];
    for (const answer of await until(Promise.all(others))) {
      expect([answer.codes, answer.usage.upstreamCalls]).toEqual([[], 1]);
      expect(answer.tookMs).toBeLessThan(1.5 * LATENCY_MS);
    }
    const { data, codes } = await until(failing);
    expect([data['pets'], data['sold'].length]).toEqual([null, 20]);
    expect(codes).toMatchObject([expect.stringMatching(/^pets /)]);
    expect(calls().toSorted()).toEqual(['350', 'all', 'pending', 'sold']);
  });

  test('a key that may not list gets pets by their ids', async () => {
    const { petApi, ask, calls } = await over(LARGE);
    petApi.fault = on('list', FORBIDS);
    const { data, codes } = await ask(page([350, 351, 352]));
    expect([data['petsById'].length, codes]).toEqual([3, []]);
    expect(calls()).toEqual(['all', '350', '351', '352']);
  });

  test.each<[string, FaultRule]>([
    ['one list is forbidden', on('sold', FORBIDS)],
    ['three lists fail, with all their retries', on(['sold', 'pending', 'available'], fails())],
  ])('a get in flight is left alone where %s', async (_what, fault) => {
    const { petApi, ask, send } = await over(LARGE, { maxStaleMs: 0 });
    await ask(EVERYTHING);
    // Enough calls for some retries.
    for (let call = 0; call < 60; call += 1) await ask(ALL, { cacheControl: 'no-cache' });
    await pass(2_000);
    petApi.fault = [fault, on('350', slow(1_500))];
    const pet = send('{ pet(id: 350) { id } }');
    const lists = send(
      '{ a: pets(status: AVAILABLE) { id } p: pets(status: PENDING) { id } s: pets(status: SOLD) { id } }',
    );
    expect((await until(lists)).codes).toContainEqual(expect.stringMatching(/^s /));
    expect(await until(pet)).toMatchObject({ data: { pet: { id: '350' } }, codes: [] });
  });

  test('a no-cache read fails with its own call alone', async () => {
    const { petApi, send, calls } = await over(LARGE);
    petApi.fault = times(1, on('350', fails()));
    const first = send('{ pet(id: 350) { id } }');
    await pass(50);
    const second = send('{ pet(id: 350) { id } }', { cacheControl: 'no-cache' });
    expect((await until(first)).codes).toHaveLength(1);
    expect(await until(second)).toMatchObject({ data: { pet: { id: '350' } }, usage: { upstreamCalls: 1 } });
    expect(calls()).toEqual(['350', '350']);
  });

  test('reads of a small store get calls of their own after the second failure of its list', async () => {
    const { petApi, ask, calls } = await over(SMALL);
    petApi.fault = on('all', fails());
    const { data, codes, tookMs } = await ask(
      '{ pet(id: 7) { id } none: pet(id: 777) { id } pets(status: SOLD) { id } }',
    );
    expect(codes).toEqual([]);
    expect(data).toMatchObject({ pet: { id: '7' }, none: null });
    // Nothing has worked before, so that one call at a time finds out what does.
    expect(tookMs).toBeLessThan(6_000);
    expect(new Set(calls())).toEqual(new Set(['all', '7', '777', 'sold']));
    // Until it works that list is not used to save calls.
    await ask(page([8, 10]));
    expect(calls().filter((call) => call !== 'all')).toEqual(['8', '10']);
    petApi.fault = undefined;
    await pass(31_000);
    await ask(page([11, 13]));
    expect(calls()[0]).toBe('all');
    await pass(1_100);
    await ask(page([14, 16]));
    expect(calls()).toEqual(['all']);
  });
});

test('where a list alone fails, the pets that it has shown are refreshed by calls of their own', async () => {
  const { petApi, ask } = await over(LARGE);
  await ask(EVERYTHING);
  petApi.fault = on('all', fails());
  const reasons: unknown[] = [];
  for (let operations = 0; operations < 20; operations += 1) {
    await pass(500);
    const { codes, usage } = await ask('{ pet(id: 1) { id } pet2: pet(id: 350) { id } }');
    expect(codes).toEqual([]);
    reasons.push(usage.staleReason);
  }
  expect(reasons).toContain('UPSTREAM_FAILED');
  expect(reasons.slice(10)).not.toContain('UPSTREAM_FAILED');
});

describe('an outage is not hammered', () => {
  test.each(['demo-free', 'demo-business'])(
    'three seconds of 503 on a hot list cost %s five calls at most',
    async (apiKey) => {
      const { petApi, ask, calls, send } = await over(LARGE);
      await ask(ALL, { apiKey });
      await pass(1_100);
      calls();
      const beginMs = Date.now();
      const endMs = beginMs + 3_000;
      petApi.fault = during(petApi.now(), petApi.now() + endMs - beginMs, fails());
      const answers: ReturnType<typeof send>[] = [];
      while (Date.now() < endMs + 2_000) {
        answers.push(send(ALL, { apiKey }));
        await pass(10);
      }
      expect(petApi.log.filter(({ atMs }) => atMs < endMs).length).toBeLessThanOrEqual(5);
      const given = await until(Promise.all(answers));
      expect(given.flatMap(({ codes }) => codes)).toEqual([]);
      expect(new Set(given.slice(30, 250).map(({ usage }) => usage.staleReason))).toEqual(new Set(['UPSTREAM_FAILED']));
      expect(Math.max(...given.slice(30).map(({ tookMs }) => tookMs))).toBeLessThan(LATENCY_MS + 50);
      // Fresh again a second or two after the end of the outage.
      expect(given.at(-1)?.usage).not.toHaveProperty('staleReason');
      const billed = given.reduce((sum, { usage }) => sum + usage.upstreamCalls, 0);
      expect(billed).toBe(petApi.log.length);
    },
  );

  test('the pauses double up to 30 s, and end with the first response', async () => {
    const { petApi, ask } = await over(LARGE, { maxStaleMs: 3_600_000 });
    await ask(ALL);
    await pass(1_100);
    petApi.fault = fails();
    petApi.log.length = 0;
    const startedAtMs = Date.now();
    while (Date.now() < startedAtMs + 130_000) {
      await ask(ALL);
      await pass(100);
    }
    const seconds = petApi.log.map(({ atMs }, index) =>
      Math.round((atMs - (petApi.log[index - 1]?.atMs ?? atMs)) / 1000),
    );
    expect(seconds).toEqual([0, 1, 2, 4, 8, 16, 30, 30, 30]);
    petApi.fault = undefined;
    await pass(30_000);
    await ask(ALL);
    await pass(500);
    expect((await ask(ALL)).usage).not.toHaveProperty('staleReason');
  });

  test.each([
    ['5', 5],
    ['120', 30],
    ['0', 1],
  ])('a 503 with Retry-After: %s is called again after %d s', async (retryAfter, seconds) => {
    const { petApi, ask, calls } = await over(LARGE);
    await ask(ALL);
    await pass(1_100);
    calls();
    petApi.fault = times(1, fails(503, { headers: { 'retry-after': retryAfter } }));
    await ask(ALL);
    await pass(seconds * 1_000 - 10);
    expect((await ask(ALL)).usage).toMatchObject({ staleReason: 'UPSTREAM_FAILED' });
    expect(calls()).toEqual(['all']);
    await pass(20);
    await ask(ALL);
    await pass(LATENCY_MS + 10);
    expect((await ask(ALL)).usage).not.toHaveProperty('staleReason');
  });

  test('while the upstream hangs, one operation waits for it, and none after it', async () => {
    const { petApi, ask } = await over(LARGE);
    await ask(ALL);
    await pass(1_100);
    petApi.fault = HANGS;
    expect((await ask(ALL)).tookMs).toBeGreaterThan(4_900);
    const tookMs: number[] = [];
    for (let operations = 0; operations < 60; operations += 1) {
      const { usage, ...answer } = await ask(ALL);
      expect(usage.staleReason).toBe('UPSTREAM_FAILED');
      tookMs.push(answer.tookMs);
      await pass(500);
    }
    // The first operation after a backoff waits until the next try has a connection.
    expect(Math.max(...tookMs)).toBeLessThanOrEqual(LATENCY_MS / 2);
    expect(tookMs.filter((ms) => ms > 0).length).toBeLessThan(6);
  });

  test('without anything cached, a read whose call failed fails at once for maxAge, but for no-cache', async () => {
    const { petApi, ask, calls } = await over(LARGE);
    petApi.fault = fails();
    const startedAtMs = Date.now();
    const first = await ask(ALL);
    expect(first).toMatchObject({ codes: ['pets DOWNSTREAM_SERVICE_ERROR'], usage: { upstreamCalls: 1 } });
    while (Date.now() < startedAtMs + 1_000) {
      expect(await ask(ALL)).toMatchObject({ codes: first.codes, tookMs: 0, usage: { upstreamCalls: 0 } });
      await pass(10);
    }
    expect(calls()).toEqual(['all']);
    expect((await ask(ALL, { cacheControl: 'no-cache' })).usage.upstreamCalls).toBe(1);
    // The second failure in a row.
    await pass(2_100);
    petApi.fault = undefined;
    expect((await ask(ALL)).codes).toEqual([]);
  });
});

describe('a refresh waits for nothing before its call', () => {
  test('not for a place among the calls in flight', async () => {
    const { petApi, ask, send } = await over(LARGE);
    await ask(EVERYTHING);
    // Calls that prove the key: a new one's go by trust.
    await ask(page(idsFrom(301, 30)));
    await pass(70_000);
    await ask(EVERYTHING);
    await pass(1_100);
    petApi.fault = on('get', slow(3_000));
    const pages = send(page(idsFrom(331, 54)));
    await pass(300);
    expect(await ask(ALL)).toMatchObject({ codes: [], tookMs: 0, usage: { staleReason: 'CALLS_IN_FLIGHT' } });
    expect((await until(pages)).codes).toEqual([]);
  });

  test('not for the probe after a 429', async () => {
    const { petApi, ask, send } = await over(LARGE);
    await ask(EVERYTHING);
    await pass(1_100);
    petApi.fault = [times(1, tooMany(1)), on('get', HANGS)];
    await ask(ALL);
    await pass(10_000);
    const probe = send('{ pet(id: 395) { id } }');
    await pass(300);
    expect(petApi.log.at(-1)?.target).toBe('395');
    expect(await ask(ALL)).toMatchObject({ codes: [], tookMs: 0, usage: { staleReason: 'PAUSED' } });
    await until(probe);
  });

  test('two refreshes after a pause are the probe and a stale answer', async () => {
    const { petApi, ask, send } = await over(LARGE);
    await ask(EVERYTHING);
    await pass(1_100);
    petApi.fault = times(1, tooMany(1));
    await ask(ALL);
    await pass(10_000);
    const answers = await until(Promise.all([send(ALL), send('{ pets(status: SOLD) { id } }')]));
    expect(answers.map(({ usage }) => usage.staleReason)).toEqual([undefined, 'PAUSED']);
    expect(answers[1]?.tookMs).toBeLessThan(50);
  });
});

describe('independent calls leave together', () => {
  test.each([
    ['{ pets { id } pets2: pets(status: SOLD) { id } }', 2],
    [EVERYTHING, 4],
    ['{ pets(status: SOLD) { id } pet(id: 395) { id } }', 2],
    ['{ pets { id } sold: pets(status: SOLD) { id } pet(id: 395) { id } }', 3],
  ])('%s takes one round trip of a large store', async (document, count) => {
    const { ask, calls } = await over(LARGE, { maxStaleMs: 0 });
    await ask(EVERYTHING);
    await pass(1_100);
    calls();
    const { codes, tookMs } = await ask(document);
    expect(codes).toEqual([]);
    expect(calls()).toHaveLength(count);
    expect(tookMs).toBeLessThan(1.5 * LATENCY_MS);
  });
});

describe('one blip costs a small store little', () => {
  test('where data is stale', async () => {
    const { petApi, ask, calls } = await over(SMALL);
    const ids = page(idsFrom(1, 30));
    for (let pages = 0; pages < 4; pages += 1) {
      await ask(ids);
      await pass(1_200);
    }
    petApi.fault = times(1, on('all', fails()));
    calls();
    for (let pages = 0; pages < 8; pages += 1) {
      expect((await ask(ids)).codes).toEqual([]);
      await pass(1_200);
    }
    expect(calls()).toEqual(Array.from({ length: 8 }, () => 'all'));
  });

  test('where nothing is cached', async () => {
    const { petApi, ask, calls } = await over(SMALL, { maxAgeMs: 10_000 });
    petApi.fault = times(1, fails());
    const endMs = Date.now() + 10_000;
    while (Date.now() < endMs) {
      const { codes, data } = await ask(page(idsFrom(1, 30)));
      expect([codes, data['petsById'].length]).toEqual([[], 30]);
      await pass(1_000);
    }
    expect(calls()).toEqual(['all', 'all']);
  });

  test('an outage of three seconds costs three calls more', async () => {
    const { petApi, ask, calls } = await over(SMALL);
    const ids = page(idsFrom(1, 30));
    await ask(ids);
    await pass(1_100);
    calls();
    petApi.fault = during(petApi.now(), petApi.now() + 3_000, fails());
    for (let pages = 0; pages < 50; pages += 1) {
      expect((await ask(ids)).codes).toEqual([]);
      await pass(100);
    }
    expect(calls()).toEqual(['all', 'all', 'all', 'all']);
  });
});

describe('an operation pays for what was sent', () => {
  // No list has shown it, until `sold` does.
  const hidden = { id: 390, name: 'Eve', categoryId: 1, status: 'sold' };
  const shows: FaultRule = { body: (text) => JSON.stringify([hidden, ...JSON.parse(text).slice(1)]) };

  test.each<[string, number, FaultRule]>([
    ['is refused late', 0, { ...REFUSES, delayMs: 500 }],
    ['opens', 1, undefined],
  ])('where another call answers its read, and then its own connection %s: %d', async (_how, paid, fault) => {
    const { petApi, ask, send } = await over(LARGE);
    await ask(EVERYTHING);
    await pass(1_100);
    petApi.log.length = 0;
    petApi.fault = [on('sold', shows), on('390', fault)];
    const list = send('{ pets(status: SOLD) { id } }');
    await pass(LATENCY_MS - 50);
    const pet = await until(send('{ pet(id: 390) { id } }'));
    expect(pet).toMatchObject({ data: { pet: { id: '390' } }, codes: [], usage: { upstreamCalls: paid } });
    expect(pet.tookMs).toBeLessThan(LATENCY_MS);
    await until(list);
    await pass(500);
    expect(petApi.log).toHaveLength(1 + paid);
  });
});
