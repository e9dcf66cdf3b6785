import { describe, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';

const ready = async ({ endpoint }: TestGateway) => {
  const answer = await fetch(new URL('/health/ready', endpoint));
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};

/** Heartbeats are a second apart. */
const PATIENCE = { timeout: 10_000 };

test('a process is alive and ready at exactly these paths', async () => {
  await using gateway = await startGateway();
  const status = async (path: string) => (await fetch(new URL(path, gateway.endpoint))).status;
  expect(await Promise.all(['/health/live', '/health/ready'].map(status))).toEqual([200, 200]);
  for (const path of ['/health', '/health/live/', '/graphql/health/live', '/x/health/ready']) {
    expect(await status(path)).toBe(404);
  }
});

test('one process without Redis says so', async () => {
  await using gateway = await startGateway();
  expect(await ready(gateway)).toEqual({
    status: 200,
    body: { status: 'ok', redis: 'none', ledger: 'own', upstream: { gatesClosed: 0, singleReads: true } },
  });
});

test('a gate that a 429 has closed is told of, and takes nothing out of service', async () => {
  await using gateway = await startGateway({ gateway: { maxWaitMs: 100 } });
  gateway.sandbox.setFault(() => ({ refused: true, status: 429, headers: { 'retry-after': '30' } }));
  await gateway.query('{ pets { id } }');
  expect(await ready(gateway)).toMatchObject({ status: 200, body: { status: 'ok', upstream: { gatesClosed: 1 } } });
});

test('a route that the upstream has withdrawn is told of', async () => {
  await using gateway = await startGateway();
  gateway.sandbox.setFault(({ path }) => (path.startsWith('/pets/') ? { refused: true, status: 410 } : undefined));
  await gateway.query('{ pet(id: "1") { id } }');
  expect(await ready(gateway)).toMatchObject({ status: 200, body: { upstream: { singleReads: false } } });
});

test('a process that is about to stop is alive and not ready', async () => {
  await using gateway = await startGateway();
  await gateway.gateway.drain();
  expect(await ready(gateway)).toMatchObject({ status: 503, body: { status: 'draining' } });
  expect((await fetch(new URL('/health/live', gateway.endpoint))).status).toBe(200);
});

describe.runIf(redisIsHere)('with Redis', () => {
  test('a process shares its ledger, goes on alone while Redis is away, and says so', async () => {
    const redis = await startRedis();
    try {
      await using gateway = await startGateway({ gateway: { redisUrl: redis.url, admin: true } });
      const up = async () => {
        const text = await (await fetch(`${gateway.adminOrigin}/metrics`)).text();
        return /^petql_redis_up (.*)$/m.exec(text)?.[1];
      };
      await expect
        .poll(() => ready(gateway), PATIENCE)
        .toMatchObject({ body: { redis: 'connected', ledger: 'shared' } });
      expect(await up()).toBe('1');
      await redis.kill();
      await expect
        .poll(() => ready(gateway), PATIENCE)
        .toMatchObject({ status: 200, body: { status: 'degraded', redis: 'away', ledger: 'alone' } });
      expect(await up()).toBe('0');
      expect(await gateway.query('{ pets { id } }')).toMatchObject({ status: 200, data: { pets: expect.anything() } });
      await redis.start();
      await expect.poll(() => ready(gateway), PATIENCE).toMatchObject({ body: { status: 'ok' } });
    } finally {
      await redis.close();
    }
  });

  // Under another secret a caller has another name: each secret spent the whole plan, and nobody was told.
  test('processes with different key secrets say so, until one secret is left', async () => {
    const redis = await startRedis();
    try {
      await using one = await startGateway({ gateway: { redisUrl: redis.url, keySecret: 'the one secret of all' } });
      const degraded = { status: 200, body: { status: 'degraded', redis: 'connected', ledger: 'split' } };
      const shared = { status: 200, body: { status: 'ok', redis: 'connected', ledger: 'shared' } };
      await expect.poll(() => ready(one), PATIENCE).toMatchObject(shared);
      const other = await startGateway({ gateway: { redisUrl: redis.url } });
      try {
        await expect.poll(() => ready(one), PATIENCE).toMatchObject(degraded);
        await expect.poll(() => ready(other), PATIENCE).toMatchObject(degraded);
      } finally {
        await other[Symbol.asyncDispose]();
      }
      await expect.poll(() => ready(one), { timeout: 20_000 }).toMatchObject(shared);
      const told = one.logLines.filter(({ msg }) => String(msg).includes('key secret'));
      expect(told.map(({ level }) => level)).toEqual([40, 30]);
      expect(await redis.command('EXISTS', 'petql:key-secrets')).toBe(':1\r\n');
      expect(await redis.command('ZRANGE', 'petql:key-secrets', '0', '-1')).not.toContain('the one secret');
    } finally {
      await redis.close();
    }
  }, 60_000);
});
