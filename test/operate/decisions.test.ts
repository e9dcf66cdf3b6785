import { describe, expect, test } from 'vitest';
import { FORBIDS, HANGS, REJECTS_KEY, RESETS, fails, tooMany } from '../support/pet-api/fault.ts';
import { NOTHING_TOLD } from '../support/pet-api/headers.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { PLANS } from '../../src/common/plan.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

/** 16 bytes of a hash at least, and never the key itself. */
const KEY_HASH = expect.stringMatching(/^[\w-]{22,}$/);

const createFreeWorld = (): Promise<World> =>
  createWorld({
    seed: 1,
    startsAt: '2026-11-21T09:41:07Z',
    keys: { key: { ...PLANS.free, windows: 'fixed', tells: 'minute' } },
  });
/** About a key; calls that fail have a warning of their own. */
const warnings = ({ logLines }: Petql) => logLines.filter(({ level, key }) => level === 40 && key !== undefined);
const lines = ({ logLines }: Petql, message: string) => logLines.filter(({ msg }) => msg === message);

describe('the log has one warning', () => {
  test('for a 429, however many calls in flight met it, with the counts that led to it', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: 'free' });
    await world.until(petql.create(30));
    world.petApi.fault = tooMany(30, { told: NOTHING_TOLD });
    await world.until(Promise.all(Array.from({ length: 20 }, () => petql.create(1, { waitMs: 1_000 }))));
    expect(world.petApi.log.length).toBeGreaterThan(30);
    expect(warnings(petql)).toMatchObject([
      {
        msg: 'the pet API answered 429; the key is paused',
        key: KEY_HASH,
        incidents: 1,
        retryAfterMs: 30_000,
        plan: 'Free',
        minute: '30 of 30',
        minuteLimit: 30,
        day: expect.stringMatching(/^\d+ of 1000$/),
      },
    ]);
  });

  test.each([
    ['a probe that is refused', tooMany(), 'the pet API answered 429; the key is paused'],
    ['a probe that fails', fails(), 'the pet API failed a probe after a 429; the key is paused'],
    ['a probe without a response', HANGS, 'the pet API did not answer a probe after a 429; the key is paused'],
    ['a possible ban', FORBIDS, 'the pet API rejected the key after a 429, which may be a ban; the key is paused'],
  ])('for %s', async (_name, fault, msg) => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: 'free', upstreamTimeoutMs: 1_000 });
    // The key may list, so that a list which is forbidden later says something about the key.
    await world.until(petql.ask('{ pets { id } }'));
    await world.until(petql.create(1));
    world.petApi.fault = tooMany(1);
    await world.until(petql.ask('{ pets { id } }', { waitMs: 1_000 }));
    world.petApi.fault = fault;
    await world.pass(7_000);
    await world.until(petql.ask('{ pets { id } }', { waitMs: 3_000 }));
    await world.pass(2_000);
    expect(warnings(petql).slice(1)).toMatchObject([{ msg, key: KEY_HASH, incidents: 2 }]);
  });

  test('for a key that is rejected after it was accepted, and none for a made-up one', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: 'free' });
    await world.until(petql.ask('{ pets { id } }', { key: 'made-up' }));
    expect(warnings(petql)).toEqual([]);
    await world.until(petql.create(1));
    world.petApi.fault = REJECTS_KEY;
    await world.until(petql.create(1));
    // The list that checks it.
    await world.pass(1_500);
    expect(warnings(petql)).toMatchObject([
      { msg: 'the pet API rejects a key that it has accepted before', key: KEY_HASH },
    ]);
  });

  test('for operations that are refused, however long, and another one after ten quiet minutes', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: 'free' });
    await world.saturate([petql], 3 * MINUTE_MS, { waitMs: 1_000 });
    const warning = {
      msg: 'operations of this key are refused',
      key: KEY_HASH,
      reason: expect.stringContaining('quota of 60 calls per minute is exhausted'),
      minute: '60 of 60',
      day: expect.stringMatching(/^\d+ of 1000$/),
    };
    expect(warnings(petql)).toMatchObject([warning]);
    await world.pass(11 * MINUTE_MS);
    await world.saturate([petql], MINUTE_MS, { waitMs: 1_000 });
    expect(warnings(petql)).toMatchObject([warning, warning]);
  });

  test('with the counts of the key where a visitor has used its share', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: 'free', visitorHeader: 'x-visitor' });
    for (let call = 0; call < 40; call += 1) await world.until(petql.create(1, { visitor: 'greedy', waitMs: 0 }));
    expect(warnings(petql)).toMatchObject([
      { reason: expect.stringContaining('Your share'), minute: '30 of 60', day: '30 of 1000' },
    ]);
  });

  test('for a key whose calls are forbidden', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: 'free' });
    world.petApi.fault = FORBIDS;
    for (let call = 0; call < 5; call += 1) await world.until(petql.create(1));
    expect(warnings(petql)).toMatchObject([{ msg: 'the pet API forbids calls of this key', key: KEY_HASH }]);
  });

  test('for each of ten made-up keys a minute at most', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start();
    world.petApi.fault = FORBIDS;
    const keys = Array.from({ length: 50 }, (_, index) => `made-up-${index}`);
    await world.until(Promise.all(keys.map((key) => petql.create(1, { key }))));
    expect(warnings(petql)).toHaveLength(10);
  });

  test.each<[string, Fault, object]>([
    ['an error', fails(502), { status: 502, reason: 'failed' }],
    [
      'a page of a proxy',
      { status: 201, body: '<html>' },
      { status: 201, reason: 'unreadable', problem: 'the body: expected JSON' },
    ],
    ['a reset', RESETS, { reason: 'broken', code: 'ECONNRESET' }],
    ['silence', HANGS, { reason: 'timeout' }],
  ])('for a create with an unknown outcome after %s, with its request and the reason', async (_name, fault, why) => {
    await using world = await createFreeWorld();
    const petql = await world.start({ plan: 'free', upstreamTimeoutMs: 1_000 });
    await world.until(petql.create(1));
    world.petApi.fault = fault;
    await world.until(petql.create(1));
    expect(warnings(petql)).toMatchObject([{ key: KEY_HASH, request: expect.any(String), ...why }]);
  });

  test('for no unknown outcome of a made-up key, which is a line at debug', async () => {
    await using world = await createFreeWorld();
    const petql = await world.start();
    world.petApi.fault = fails(503);
    await world.until(Promise.all(['one', 'other'].map((key) => petql.create(1, { key }))));
    expect(warnings(petql)).toEqual([]);
    const message = 'a write had no clear response: it may have happened';
    expect(lines(petql, message)).toMatchObject([{ status: 503 }, { status: 503 }]);
  });
});

test('at debug, each decision is a line with its request', async () => {
  await using world = await createFreeWorld();
  const petql = await world.start({ plan: 'free' });
  await world.until(Promise.all([1, 2, 3].map(() => petql.create(20))));
  const waiting = petql.create(1, { waitMs: 50_000 });
  await world.pass(1_000);
  await world.until(petql.create(1, { waitMs: 1_000 }));
  await world.until(waiting);
  world.petApi.fault = ({ number }) => (number % 2 === 0 ? fails() : undefined);
  await world.until(petql.read(2));
  await world.until(petql.read(2));
  const operation = lines(petql, 'operation').find(({ upstreamCalls }) => upstreamCalls === 20);
  await world.until(petql.ask('query Named { pets { id } }', { cacheControl: 'no-cache' }));
  expect(lines(petql, 'call').at(-1)).toMatchObject({ call: 'all', operation: 'Named' });
  const own = petql.logLines.filter(({ request }) => request === operation?.['id']);
  expect(own.filter(({ msg }) => msg === 'call')).toHaveLength(20);
  expect(lines(petql, 'probe')[0]).toMatchObject({ key: KEY_HASH, isAfter429: false });
  expect(lines(petql, 'calls wait')).toContainEqual(expect.objectContaining({ by: 'minute', key: KEY_HASH }));
  expect(lines(petql, 'write refused')).toContainEqual(
    expect.objectContaining({ call: 'createPet', reason: 'quota', window: 'MINUTE', request: expect.any(String) }),
  );
  expect(lines(petql, 'call plan')[0]).toMatchObject({ key: KEY_HASH, calls: ['all'], reads: 2 });
  expect(lines(petql, 'call failed')).toContainEqual(
    expect.objectContaining({ status: 503, reason: 'failed', request: expect.any(String) }),
  );
  expect(lines(petql, 'retry')[0]).toMatchObject({ key: KEY_HASH, call: expect.any(String), waitedMs: 0 });
  expect(JSON.stringify(petql.logLines)).not.toContain('"key":"key"');
});

test.each([
  ['another program', 17, 0],
  ['a whole minute of another program', 57, 0],
  ['another program and petql', 12, 20],
])('at debug, a line says what a header has shown: the calls of %s', async (_who, others, own) => {
  await using world = await createFreeWorld();
  const petql = await world.start({ plan: 'free' });
  await world.until(petql.create(1 + own));
  world.petApi.countOthers('key', others);
  await world.until(petql.create(1));
  expect(lines(petql, 'count corrected').at(-1)).toMatchObject({
    key: KEY_HASH,
    headers: { limit: 60, remaining: 58 - own - others },
    before: { minute: { used: own + 2 } },
    after: { minute: { used: own + 2 + others } },
  });
});

test('without debug no line is built', async () => {
  await using world = await createFreeWorld();
  let built = 0;
  const count = () => void (built += 1);
  const log = { info() {}, warn() {}, error() {}, debug: count, isLevelEnabled: () => false };
  const petql = await world.start({ plan: 'free', log });
  await world.until(petql.create(2));
  expect(built).toBe(0);
});
