import { describe, expect, test } from 'vitest';
import { fails, on, tooMany } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';

const ready = async ({ endpoint }: TestGateway) => {
  const answer = await fetch(new URL('/health/ready', endpoint));
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};

/** Heartbeats are a second apart. */
const PATIENCE = { timeout: 30_000 };

test('a process is alive and ready at exactly these paths', async () => {
  await using gateway = await startGateway();
  const status = async (path: string) => (await fetch(new URL(path, gateway.endpoint))).status;
  expect(await Promise.all(['/health/live', '/health/ready'].map(status))).toEqual([200, 200]);
  for (const path of ['/health', '/health/live/', '/graphql/health/live', '/x/health/ready']) {
    expect(await status(path)).toBe(404);
  }
});

test('a process without Redis says so', async () => {
  await using gateway = await startGateway();
  expect(await ready(gateway)).toEqual({
    status: 200,
    body: { status: 'ok', redis: 'none', quota: 'local', upstream: { pausedKeys: 0, getRoute: true, closed: [] } },
  });
});

test('a paused key is shown, and petql stays ready', async () => {
  await using gateway = await startGateway({ gateway: { maxWaitMs: 100 } });
  gateway.petApi.fault = tooMany(30);
  await gateway.query('{ pets { id } }');
  expect(await ready(gateway)).toMatchObject({ status: 200, body: { status: 'ok', upstream: { pausedKeys: 1 } } });
});

test('a get route that the upstream has withdrawn is shown', async () => {
  await using gateway = await startGateway();
  gateway.petApi.fault = on('get', fails(410));
  // The list shows the first pet only, and then there are three that it does not show.
  for (const id of [1, 247, 248, 249]) await gateway.query(`{ pet(id: "${id}") { id } }`);
  expect(await ready(gateway)).toMatchObject({ status: 200, body: { upstream: { getRoute: false } } });
});

test('a process that is stopping is alive and not ready', async () => {
  await using gateway = await startGateway();
  await gateway.gateway.drain();
  expect(await ready(gateway)).toMatchObject({ status: 503, body: { status: 'draining' } });
  expect((await fetch(new URL('/health/live', gateway.endpoint))).status).toBe(200);
});

describe.runIf(redisIsHere)('with Redis', () => {
  test('readiness says whether the quota is shared or Redis is unavailable', async () => {
    const redis = await startRedis();
    try {
      await using gateway = await startGateway({ gateway: { redisUrl: redis.url, admin: true } });
      const up = async () => {
        const text = await (await fetch(`${gateway.adminOrigin}/metrics`)).text();
        return /^petql_redis_up (.*)$/m.exec(text)?.[1];
      };
      await expect
        .poll(() => ready(gateway), PATIENCE)
        .toMatchObject({ body: { redis: 'connected', quota: 'shared' } });
      expect(await up()).toBe('1');
      await redis.kill();
      await expect
        .poll(() => ready(gateway), PATIENCE)
        .toMatchObject({ status: 200, body: { status: 'degraded', redis: 'unavailable', quota: 'divided' } });
      expect(await up()).toBe('0');
      expect(await gateway.query('{ pets { id } }')).toMatchObject({ status: 200, data: { pets: expect.anything() } });
      await redis.start();
      await expect.poll(() => ready(gateway), PATIENCE).toMatchObject({ body: { status: 'ok' } });
    } finally {
      await redis.close();
    }
  });

  test('a process with another key secret than the one stored does not become ready', async () => {
    const redis = await startRedis();
    try {
      await using one = await startGateway({ gateway: { redisUrl: redis.url, keySecret: 'the one secret of all' } });
      const shared = { status: 200, body: { status: 'ok', redis: 'connected', quota: 'shared' } };
      await expect.poll(() => ready(one), PATIENCE).toMatchObject(shared);
      await using other = await startGateway({ gateway: { redisUrl: redis.url } });
      await expect(other.gateway.ready()).rejects.toThrow(/key secret/);
      const told = other.logLines.filter(({ msg }) => String(msg).includes('key secret'));
      expect(told.map(({ level }) => level)).toEqual([50]);
      const error = { extensions: { code: 'INTERNAL_SERVER_ERROR' } };
      expect((await other.query('{ pets { id } }')).errors).toMatchObject([error]);
      expect(other.petApi.log).toEqual([]);
      expect(await redis.command('GET', 'petql:key-secret:2')).not.toContain('the one secret');
    } finally {
      await redis.close();
    }
  });
});
