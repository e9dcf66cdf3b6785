import { readFileSync } from 'node:fs';
import { describe, expect, test as oneTest } from 'vitest';
import { FORBIDS } from '../support/pet-api/fault.ts';
import { isOfSlowRedis, redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { PET_API_URL, graphqlRequest, startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

const PASSWORD = 'redis-pass-b16b00';
const DEPLOYING = readFileSync(new URL('../../src/program/README.md', import.meta.url), 'utf8');
/** Those that README gives to petql's user. */
const RIGHTS = /`(~petql:\* [^`]+)`/.exec(DEPLOYING)?.[1]?.split(' ') ?? [];
const COMMANDS = RIGHTS.filter((right) => right.startsWith('+'));

/** Heartbeats are a second apart, so the tests wait together. */
const test = oneTest.concurrent;

/** Two replicas of one pet API over a Redis whose user has these rights; `maxWaitMs` ends what lacks one. */
async function startReplicas(resources: AsyncDisposableStack, rights: readonly string[], maxWaitMs?: number) {
  const redis = await startRedis();
  resources.defer(() => redis.close());
  await redis.command('ACL', 'SETUSER', 'petql', 'on', `>${PASSWORD}`, ...rights);
  const redisUrl = `${redis.url.replace('//', `//petql:${PASSWORD}@`)}/3`;
  const options = { redisUrl, admin: true, ...(maxWaitMs !== undefined && { maxWaitMs }) };
  const one = resources.use(await startGateway({ gateway: options }));
  const other = resources.use(
    await startGateway({ gateway: { ...options, petApiUrl: PET_API_URL, dispatcher: one.petApi.connect() } }),
  );
  return { redis, replicas: [one, other] as const };
}

/** Does all that petql stores: accounts, shared lists, creates that succeed and ones that do not, heartbeats. */
async function useAll(replicas: readonly [TestGateway, ...TestGateway[]]): Promise<void> {
  const [{ petApi }] = replicas;
  for (const { gateway } of replicas) {
    petApi.fault = FORBIDS;
    await gateway.fetch(graphqlRequest({ query: create('refused') }));
    petApi.fault = undefined;
    await gateway.fetch(graphqlRequest({ query: create('momo') }));
    await gateway.fetch(graphqlRequest({ query: '{ pets { id } rateLimit { plan } }' }));
  }
}

function create(idempotencyKey: string): string {
  return `mutation { createPet(input: { name: "Momo", categoryId: 1, idempotencyKey: "${idempotencyKey}" }) { pet { id } } }`;
}

/** What its users were denied, as Redis writes it down. */
async function deniedBy(redis: RedisServer): Promise<string[]> {
  const entries = await redis.command('ACL', 'LOG');
  return [...entries.matchAll(/object\r\n\$\d+\r\n(\S+)/g)].map(([, object = '']) => object);
}

describe.skipIf(!redisIsHere)("the rights that README gives to Redis's user", () => {
  test.each([
    ['allkeys-lru', '100mb', 1],
    ['volatile-ttl', '100mb', 1],
    ['noeviction', '100mb', 0],
    ['allkeys-lru', '0', 0],
  ])('show with %s at a maxmemory of %s whether Redis evicts: %i warnings', async (policy, maxmemory, warnings) => {
    await using resources = new AsyncDisposableStack();
    const redis = await startRedis({ settings: { 'maxmemory-policy': policy, maxmemory } });
    resources.defer(() => redis.close());
    await redis.command('ACL', 'SETUSER', 'petql', 'on', `>${PASSWORD}`, ...RIGHTS);
    const redisUrl = redis.url.replace('//', `//petql:${PASSWORD}@`);
    const { gateway, logLines } = resources.use(await startGateway({ gateway: { redisUrl } }));
    await gateway.ready();
    await gateway.fetch(graphqlRequest({ query: '{ pets { id } }' }));
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
    await until(async () => (await gateway.fetch(graphqlRequest({ query: '{ pets { id } }' }))).ok);
    const found = logLines.filter(({ msg }) => String(msg).startsWith('Redis evicts'));
    expect(found.map(({ level }) => level)).toEqual(Array(warnings).fill(40));
  });

  test('are enough for all that petql does, and replicas share by them', async () => {
    await using resources = new AsyncDisposableStack();
    const { redis, replicas } = await startReplicas(resources, RIGHTS);
    await useAll(replicas);
    const shown = async ({ adminOrigin }: TestGateway) => (await fetch(`${adminOrigin}/metrics`)).text();
    await until(async () => (await shown(replicas[0])).includes('petql_replicas 2'));
    expect(await deniedBy(redis)).toEqual([]);
    const warnings = replicas.flatMap(({ logLines }) => logLines).filter(({ level }) => Number(level) >= 40);
    const isExpected = ({ msg }: (typeof warnings)[number]) => msg === 'the pet API forbids calls of this key';
    expect(warnings.filter((line) => !isExpected(line) && !isOfSlowRedis(line))).toEqual([]);
    const stored = await redis.command('INFO', 'keyspace');
    expect(Number(/^db3:keys=(\d+)/m.exec(stored)?.[1])).toBeGreaterThanOrEqual(5);
  });

  test.each(COMMANDS)('are the least: without %s Redis denies petql something', async (right) => {
    await using resources = new AsyncDisposableStack();
    const { redis, replicas } = await startReplicas(resources, [...RIGHTS, right.replace('+', '-')], 500);
    await until(async () => {
      await useAll(replicas);
      return (await deniedBy(redis)).includes(right.slice(1));
    });
  });

  test.each([
    ['FLUSHALL'],
    ['ACL', 'SETUSER', 'evil', '~*', '+@all'],
    ['CONFIG', 'SET', 'maxmemory', '1'],
    ['KEYS', '*'],
    ['CLIENT', 'KILL', 'ID', '1'],
    ['GET', 'other:key'],
    ['PUBLISH', 'channel', 'text'],
  ])('do not allow %s', async (...command) => {
    await using resources = new AsyncDisposableStack();
    const redis = await startRedis();
    resources.defer(() => redis.close());
    await redis.command('ACL', 'SETUSER', 'petql', 'on', `>${PASSWORD}`, ...RIGHTS);
    expect(await redis.command('ACL', 'DRYRUN', 'petql', ...command)).toMatch(/This user has no permissions/);
  });
});
