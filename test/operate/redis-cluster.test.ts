import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test as oneTest } from 'vitest';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { isOfSlowRedis, redisIsHere } from '../support/redis-server.ts';
import { createTestPetApi, startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

const DEPLOYING = readFileSync(new URL('../../src/program/README.md', import.meta.url), 'utf8');
const [RIGHTS = '', MORE_RIGHTS = ''] = [/`(~petql:\* [^`]+)`/, /`(\+cluster[^`]+)`/].map(
  (part) => part.exec(DEPLOYING)?.[1],
);
/** Their documents are on all nodes. */
const KEYS = Array.from({ length: 8 }, (_, index) => `key-${index}`);
const PER_MINUTE = 6;
const AGE_MS = 100;
const ROUNDING_MS = 5;

/** Nodes start and fail in real time, so the tests wait together. */
const test = oneTest.concurrent;

/** Two replicas over one pet API. */
async function startReplicas(resources: AsyncDisposableStack, redisUrl: string) {
  const keys = Object.fromEntries(KEYS.map((key) => [key, { perMinute: PER_MINUTE, perDay: 1_000 }]));
  const petApi = createTestPetApi({ keys });
  const start = async () => {
    const options = {
      redisUrl,
      maxWaitMs: 1_000,
      maxAgeMs: 60_000,
      plan: `${PER_MINUTE}/1000` as const,
      dispatcher: petApi.connect(),
    };
    const gateway = resources.use(await startGateway({ gateway: options }));
    await until(async () => (await statusOf(gateway)) === 'ok');
    return gateway;
  };
  return { petApi, one: await start(), other: await start() };
}

async function statusOf({ endpoint }: TestGateway): Promise<string> {
  const response = await fetch(new URL('/health/ready', endpoint));
  return ((await response.json()) as { status: string }).status;
}

const as = (key: string, more: Readonly<Record<string, string>> = {}) => ({
  headers: { authorization: `Bearer ${key}`, ...more },
});
const create = (key: string) =>
  `mutation { createPet(input: { name: "Momo", categoryId: 1, idempotencyKey: "${key}" }) { pet { id } } }`;

describe.skipIf(!redisIsHere)('a Redis Cluster', () => {
  test('of three nodes whose clocks are 2 s apart shares quota, lists and records, by the rights of README', async () => {
    await using resources = new AsyncDisposableStack();
    const { nodes, url } = resources.use(await startRedisCluster([0, 2_000, -2_000]));
    for (const node of nodes) {
      await node.command('ACL', 'SETUSER', 'petql', 'on', '>password', ...`${RIGHTS} ${MORE_RIGHTS}`.split(' '));
    }
    const { petApi, one, other } = await startReplicas(resources, url.replaceAll('//', '//petql:password@'));
    for (const key of KEYS) {
      const readAtMs = performance.now();
      await one.query('{ pets { id } }', as(key));
      await pause(AGE_MS);
      const shared = await other.query('{ pets { id } }', as(key));
      expect(shared.errors).toBeUndefined();
      const { upstreamCalls, oldestAgeMs } = shared.extensions?.['petql'] ?? {};
      // The other replica reckons its age by the same clock, right to half a second.
      const tookMs = performance.now() - readAtMs + 500;
      expect([key, upstreamCalls, oldestAgeMs > AGE_MS - ROUNDING_MS, oldestAgeMs < tookMs]).toEqual([
        key,
        0,
        true,
        true,
      ]);
    }
    for (const key of KEYS) {
      const { data } = await one.query(create(key), as(key));
      expect((await other.query(create(key), as(key))).data).toEqual(data);
    }
    // More than the plan allows of each key, over both replicas.
    const reads = KEYS.flatMap((key) =>
      Array.from({ length: 2 * PER_MINUTE }, (_, index) =>
        (index % 2 ? one : other).query(`{ pet(id: "${index}") { id } }`, as(key, { 'cache-control': 'no-cache' })),
      ),
    );
    await Promise.all(reads);
    expect(petApi.log.filter(({ status }) => status === 429)).toEqual([]);
    expect(petApi.log.length).toBeGreaterThan(KEYS.length * 3);
    const warnings = [...one.logLines, ...other.logLines].filter(({ level }) => level >= 40);
    const expected = 'operations of this key are refused';
    expect(warnings.filter((line) => !isOfSlowRedis(line) && line['msg'] !== expected)).toEqual([]);
  });

  test('that loses a node is unavailable, and used again once it is back', async () => {
    await using resources = new AsyncDisposableStack();
    const { nodes, url } = resources.use(await startRedisCluster([0, 2_000, -2_000]));
    const { petApi, one } = await startReplicas(resources, url);
    await one.query('{ pets { id } }', as('key-0'));
    await nodes[1]?.kill();
    await until(async () => (await statusOf(one)) === 'degraded');
    expect((await one.query('{ pets { id } }', as('key-0'))).data?.['pets']).toHaveLength(20);
    await nodes[1]?.start();
    await until(async () => (await statusOf(one)) === 'ok');
    await until(async () => !(await one.query(create('back'), as('key-1'))).errors);
    expect(petApi.log.filter(({ status }) => status === 429)).toEqual([]);
  });

  test('of one node takes the URL of that node', async () => {
    await using resources = new AsyncDisposableStack();
    const { url } = resources.use(await startRedisCluster([0]));
    await startReplicas(resources, url);
  });
});
