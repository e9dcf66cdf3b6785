import { tracingChannel } from 'node:diagnostics_channel';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { GatewayOptions } from '../../src/index.ts';
import { PLANS } from '../../src/common/plan.ts';
import type { Answer } from '../support/operation.ts';
import { HANGS } from '../support/pet-api/fault.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const LIST = '{ pets { id } }';
const FOUR_LISTS =
  '{ pets { id } a: pets(status: AVAILABLE) { id } p: pets(status: PENDING) { id } s: pets(status: SOLD) { id } }';
const CREATE = 'mutation { createPet(input: { name: "Neo", categoryId: 1 }) { pet { id } } }';
/** Lists stay fresh for longer than a test. */
const MAX_AGE_MS = 60_000;
/** Then a read waits for a look. */
const UNTIL_BLIND_MS = 800;

const createSharedWorld = (latencyMs: readonly [from: number, to: number] = [10, 80]) =>
  createWorld({
    seed: 1,
    latencyMs,
    startsAt: '2026-11-21T11:59:13Z',
    keys: { key: { ...PLANS.business, windows: 'fixed', tells: 'minute' } },
  });
const countLists = ({ petApi }: World) => petApi.log.filter(({ kind }) => kind === 'list').length;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function usedHeap(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** How long an operation takes, in virtual milliseconds. */
async function timeOf(world: World, petql: Petql): Promise<number> {
  const startedMs = world.nowMs;
  expect((await world.until(petql.ask(LIST))).errors).toBeUndefined();
  return world.nowMs - startedMs;
}

/** Operations that the response cache did not answer. */
function countExecutions(): () => number {
  let executions = 0;
  const channel = tracingChannel('graphql:execute');
  const listener = { start: () => (executions += 1), end() {}, asyncStart() {}, asyncEnd() {}, error() {} };
  channel.subscribe(listener);
  onTestFinished(() => channel.unsubscribe(listener));
  return () => executions;
}

describe('a look at the other replicas', () => {
  test('takes place in the background while reads come often, and the response cache answers', async () => {
    await using world = await createSharedWorld();
    const redis = createRedis({ seed: 1, latencyMs: [40, 40] });
    const [petql] = await startReplicas(world, redis, 1, { maxAgeMs: MAX_AGE_MS });
    for (let time = 0; time < 2; time += 1) await timeOf(world, petql);
    const executions = countExecutions();
    const looks = redis.compares.won;
    for (let time = 0; time < 20; time += 1) {
      await world.pass(time % 2 === 0 ? 300 : 500);
      expect(await timeOf(world, petql)).toBe(0);
    }
    expect(executions()).toBe(0);
    expect(redis.compares.won - looks).toBeGreaterThan(20);
  });

  test('shows the write of another one within a second', async () => {
    await using world = await createSharedWorld();
    const redis = createRedis({ seed: 1, latencyMs: [20, 60] });
    const [one, other] = await startReplicas(world, redis, 2, { maxAgeMs: MAX_AGE_MS });
    await timeOf(world, one);
    const reader = { isOn: true };
    const reading = (async () => {
      while (reader.isOn) {
        expect((await (other as Petql).ask(LIST)).errors).toBeUndefined();
        await new Promise((resolve) => void setTimeout(resolve, 90));
      }
    })();
    for (let round = 0; round < 10; round += 1) {
      await world.pass(1_000 + 37 * round);
      expect((await world.until(one.ask(CREATE))).errors).toBeUndefined();
      const before = countLists(world);
      await world.pass(1_000);
      expect(countLists(world)).toBe(before + 1);
    }
    reader.isOn = false;
    await world.until(reading);
  });

  test('is waited for after a pause', async () => {
    await using world = await createSharedWorld();
    const [one, other] = await startReplicas(world, createRedis({ seed: 1 }), 2, { maxAgeMs: MAX_AGE_MS });
    for (const petql of [one, other as Petql]) await timeOf(world, petql);
    await world.until(one.ask(CREATE));
    const before = countLists(world);
    await world.pass(800);
    await timeOf(world, other as Petql);
    expect(countLists(world)).toBe(before + 1);
  });

  test.each([0, 20, 40])('shows no list from before an own write (a create %d ms later)', async (laterMs) => {
    await using world = await createSharedWorld([10, 20]);
    const redis = createRedis({ seed: 1, latencyMs: [40, 40] });
    const [one, other = one] = await startReplicas(world, redis, 2, { maxAgeMs: MAX_AGE_MS });
    await world.until(other.ask(CREATE));
    await world.pass(2_000);
    await world.until(one.ask(LIST));
    await world.pass(2_000);

    // It knows the account, so that its create is over while the list of the other replica is on its way.
    await other.rateLimit();
    const reading = other.ask(LIST);
    await world.pass(laterMs);
    const createdMs = world.nowMs;
    await world.until(other.ask(CREATE));
    await world.until(reading);

    await world.pass(500);
    const { extensions } = await world.until(other.ask(LIST));
    expect(extensions?.petql?.oldestAgeMs).toBeLessThanOrEqual(world.nowMs - createdMs);
  });

  test('that Redis does not answer holds up reads for a moment at most', async () => {
    await using world = await createSharedWorld();
    const redis = createRedis({ seed: 1 });
    const [petql] = await startReplicas(world, redis, 1, { maxAgeMs: MAX_AGE_MS });
    await timeOf(world, petql);
    await world.pass(2_000);
    redis.fault = 'hanging';
    const times = [];
    for (let time = 0; time < 20; time += 1) {
      times.push(await timeOf(world, petql));
      await world.pass(100);
    }
    expect(Math.max(...times)).toBeLessThanOrEqual(101);
    expect(times.filter((ms) => ms > 0).length).toBeLessThanOrEqual(4);
  });
});

describe.skipIf(!redisIsHere)('in Redis', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis?.close());

  test('a look reads a version, and a lost one needs no second command', async () => {
    const options = { redisUrl: redis.url, maxAgeMs: MAX_AGE_MS };
    await using one = await startEmbedded(options);
    await using other = await startEmbedded({ ...options, dispatcher: one.petApi.connect() });
    using monitor = await redis.monitor();
    const commandsOf = async (gateway: typeof one, document = LIST) => {
      await monitor.lines();
      expect((await gateway.execute({ document, apiKey: 'demo-business' })).errors).toBeUndefined();
      const lines = (await monitor.lines()).filter((line) => /petql:lists?:/.test(line));
      return lines.map((line) => (line.includes('"keep"') ? 'look' : /\] "(\w+)"/.exec(line)?.[1]));
    };
    for (const gateway of [one, other]) await commandsOf(gateway);
    await sleep(UNTIL_BLIND_MS);
    expect(await commandsOf(other)).toEqual(['look', 'GETRANGE']);
    await commandsOf(one, CREATE);
    await sleep(UNTIL_BLIND_MS);
    // The lists are empty now, so it calls for its own, and writes that.
    const [first, second, third, ...writing] = await commandsOf(other);
    expect([first, second, third]).toEqual(['look', 'GETRANGE', 'GET']);
    expect(writing).not.toContain('look');
  });

  /** The heap that four lists of each of these keys take, in bytes. */
  async function heapOf(keys: readonly string[], options: Partial<GatewayOptions>): Promise<number> {
    const plans = Object.fromEntries(keys.map((key) => [key, PLANS.business]));
    await using gateway = await startEmbedded(
      { maxAgeMs: MAX_AGE_MS, maxWaitMs: 60_000, ...options },
      { keys: plans, pets: petSeeds(400) },
    );
    await gateway.execute({ document: FOUR_LISTS, apiKey: 'nobody' });
    const before = usedHeap();
    const answers = await Promise.all(keys.map((apiKey) => gateway.execute({ document: FOUR_LISTS, apiKey })));
    expect(answers.flatMap(({ errors = [] }) => errors)).toEqual([]);
    gateway.petApi.log.length = 0;
    return usedHeap() - before;
  }

  test('shared lists take no memory beside the cache', async () => {
    const keys = Array.from({ length: 150 }, (_, index) => `key-${index}`);
    await heapOf(keys.slice(0, 20), { redisUrl: redis.url });
    const alone = await heapOf(keys, {});
    // The collector may leave something, but not the same twice.
    const shared = Math.min(await heapOf(keys, { redisUrl: redis.url }), await heapOf(keys, { redisUrl: redis.url }));
    // With Redis, petql remembers the text of an account beside the account.
    expect((shared - alone) / keys.length).toBeLessThan(22_000);
  });
});

describe('three replicas with hot lists', () => {
  const LISTS = '{ pets { id } a: pets(status: AVAILABLE) { id } s: pets(status: SOLD) { id } }';

  /** Each replica reads them forty times a second, for so long. */
  async function readHotLists(world: World, replicas: readonly Petql[], document: string, durationMs: number) {
    const endMs = world.nowMs + durationMs;
    const answers: Promise<Answer>[] = [];
    const read = async (petql: Petql) => {
      while (world.nowMs < endMs) {
        answers.push(petql.ask(document));
        await new Promise((resolve) => void setTimeout(resolve, 25));
      }
    };
    await world.until(Promise.all(replicas.map(read)));
    return (await world.until(Promise.all(answers))).map(({ errors, extensions }) => ({
      errors,
      ...extensions?.petql,
    }));
  }

  test.each([
    ['three lists', LISTS, 3, [10, 50]],
    ['one list of a slow pet API', LIST, 1, [250, 250]],
  ] as const)('call for %s as often as one would', async (_name, document, lists, latencyMs) => {
    await using world = await createSharedWorld(latencyMs);
    const replicas = await startReplicas(world, createRedis({ seed: 1 }), 3);
    const answers = await readHotLists(world, replicas, document, 10_000);
    // At first none has them.
    expect(countLists(world)).toBeLessThanOrEqual(lists * (3 + 10));
    expect(countLists(world)).toBeGreaterThanOrEqual(lists * 7);
    expect(answers.filter(({ errors }) => errors)).toEqual([]);
    // A replica may learn of the first success, which proves the key, only with its own next call.
    const reasons = answers.slice(Math.floor(answers.length / 5)).map(({ staleReason }) => staleReason);
    expect(new Set(reasons)).toEqual(new Set([undefined, 'SAVING_QUOTA']));
    expect(Math.max(...answers.map(({ oldestAgeMs }) => oldestAgeMs))).toBeLessThan(1_800);
  });

  test('take over the refresh of one that hangs, after a second', async () => {
    await using world = await createSharedWorld();
    const replicas = await startReplicas(world, createRedis({ seed: 1 }), 3);
    await readHotLists(world, replicas, LIST, 3_000);
    const before = countLists(world);
    world.petApi.fault = ({ kind }) => (kind === 'list' && countLists(world) === before ? HANGS : undefined);
    await readHotLists(world, replicas, LIST, 4_000);
    // One hangs for the first second.
    expect(countLists(world) - before).toBeGreaterThanOrEqual(3);
  });
});
