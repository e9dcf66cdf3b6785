import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { askDayUsed } from '../support/client.ts';
import { createFaults } from '../support/faults.ts';
import { startFleet } from '../support/fleet.ts';
import { startLoad } from '../support/load.ts';
import { createPetApi } from '../support/pet-api/pet-api.ts';
import { createRandom } from '../support/random.ts';
import { startRedisSentinel } from '../support/redis-sentinel.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { CERTIFICATE_FILE, freePort, servePort } from '../support/serve.ts';
import { startGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

/** A message of a Sentinel. */
const PUSHED = '*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$26\r\nstore 127.0.0.1 1 ::1 2345\r\n';
const KEY = 'sentinel-key';
const REPLICAS = 2;
/** README: a loss of Redis costs one 429 or two for each replica. */
const LOST = 2 * REPLICAS;

describe.skipIf(!redisIsHere)('Redis behind Sentinel', () => {
  test.concurrent('a failover under load loses the last calls of the replica, and no replica forgets them', async () => {
    await using redis = await startRedisSentinel();
    const petApi = createPetApi({
      planOf: () => ({ ...PLANS.pro, windows: 'sliding', tells: 'nothing' }),
      latencyMs: [20, 60],
    });
    await using server = await petApi.listen();
    const options = { upstreamUrl: server.url, redisUrl: redis.url, faults: createFaults(), args: ['--plan', 'pro'] };
    await using fleet = await startFleet({ ...options, count: REPLICAS });
    await fleet.knowEachOther();
    const { endpoints } = fleet;
    const load = startLoad({ endpoints, key: KEY, clientsPerReplica: 2, random: createRandom(1) });

    await until(() => petApi.log.length > 40);
    await redis.stopReplication();
    const lostFrom = petApi.log.length;
    await until(() => petApi.log.length > lostFrom + 40);
    await redis.master.kill();
    const calledBefore = petApi.log.length;
    await redis.failedOver();

    await until(() => petApi.log.length > calledBefore + 100);
    // The rest of the minute's permits. What was forgotten would be called again, and answered 429.
    await new Promise((resolve) => void setTimeout(resolve, 5_000));
    await load.stop();
    expect(calledBefore).toBeLessThan(PLANS.pro.perMinute / 2);
    expect(petApi.log.length).toBeGreaterThan(0.85 * PLANS.pro.perMinute);
    expect(petApi.log.filter(({ over }) => over).length).toBeLessThanOrEqual(LOST);
    for (const endpoint of endpoints) {
      expect(await askDayUsed(endpoint(), KEY)).toBeGreaterThanOrEqual(petApi.log.length - LOST);
    }
  });

  // The old master takes writes for ten seconds more, which nobody keeps.
  test.concurrent('a planned failover is followed at once', async () => {
    await using redis = await startRedisSentinel();
    await using gateway = await startGateway({ gateway: { redisUrl: redis.url, plan: 'pro' } });
    const create = async (key: string) => {
      const input = `{ name: "Momo", categoryId: 1, idempotencyKey: "${key}" }`;
      const document = `mutation { createPet(input: ${input}) { pet { id } } }`;
      return (await gateway.gateway.execute({ document, apiKey: 'demo-pro' })).errors === undefined;
    };
    expect(await create('before')).toBe(true);
    await redis.sentinels[0]?.command('SENTINEL', 'FAILOVER', 'pet-store');
    await redis.failedOver();

    const failedOverMs = performance.now();
    const recordsBefore = await redis.replica.command('KEYS', 'petql:record:*');
    let tries = 0;
    const recordsNow = async () => {
      await create(`after-${(tries += 1)}`);
      return redis.replica.command('KEYS', 'petql:record:*');
    };
    await expect.poll(recordsNow).not.toBe(recordsBefore);
    expect(performance.now() - failedOverMs).toBeLessThan(6_000);
  });

  const PASSWORD = 'redis-pass-b16b00';
  const SENTINEL_PASSWORD = 'sentinel-pass-5e9';
  /** Those of the README. */
  const RIGHTS = '+evalsha +eval +get +getrange +set +del +time +info +select'.split(' ');

  /** A gateway over a Sentinel behind one that is gone. It and Redis have passwords of their own. */
  async function startOverSentinel(name: string, sentinelPassword: string) {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    await redis.command('ACL', 'SETUSER', 'petql', 'on', `>${PASSWORD}`, '~petql:*', ...RIGHTS);
    const sentinel = await startRedis({
      sentinel: `sentinel monitor pet-store 127.0.0.1 ${new URL(redis.url).port} 1`,
    });
    onTestFinished(() => sentinel.close());
    await sentinel.command('ACL', 'SETUSER', 'default', `>${SENTINEL_PASSWORD}`);

    const hosts = `127.0.0.1:${await freePort()},${new URL(sentinel.url).host}`;
    const redisUrl = `redis+sentinel://petql:${PASSWORD}@${hosts}/${name}?sentinelPassword=${sentinelPassword}`;
    const gateway = await startGateway({ gateway: { redisUrl } });
    onTestFinished(() => gateway[Symbol.asyncDispose]());
    return { gateway, redis };
  }

  test('is found through a Sentinel that answers', async () => {
    const { gateway, redis } = await startOverSentinel('pet-store', SENTINEL_PASSWORD);
    expect((await gateway.query('{ pets(limit: 1) { id } }')).errors).toBeUndefined();
    await until(async () => (await redis.command('KEYS', '*')).includes('petql:account:'));
  });

  test('is found with TLS, to its Sentinel too', async () => {
    const trusted = getCACertificates('default');
    setDefaultCACertificates([...trusted, readFileSync(CERTIFICATE_FILE, 'utf8')]);
    onTestFinished(() => setDefaultCACertificates(trusted));
    const files = ['tls-cert-file', 'tls-key-file', 'tls-ca-cert-file'].map((name) => [name, CERTIFICATE_FILE]);
    const [port, sentinelPort] = [String(await freePort()), String(await freePort())];
    const tls = { ...Object.fromEntries(files), 'tls-auth-clients': 'no' };
    const redis = await startRedis({ settings: { ...tls, 'tls-port': port } });
    onTestFinished(() => redis.close());
    const lines = Object.entries({ ...tls, 'tls-port': sentinelPort, 'tls-replication': 'yes' }).map((line) =>
      line.join(' '),
    );
    const sentinel = [...lines, `sentinel monitor pet-store 127.0.0.1 ${port} 1`].join('\n');
    const { close } = await startRedis({ sentinel });
    onTestFinished(() => close());

    const redisUrl = `rediss+sentinel://127.0.0.1:${sentinelPort}/pet-store`;
    await using gateway = await startGateway({ gateway: { redisUrl } });
    await expect.poll(async () => (await gateway.query('{ pets(limit: 1) { id } }')).errors).toBeUndefined();
    await until(async () => (await redis.command('KEYS', '*')).includes('petql:account:'));
  });

  test('is found again where a Sentinel announces another while petql connects', async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    const { promise: isHeld, resolve: release } = Promise.withResolvers<void>();
    const subscribers: Socket[] = [];
    let questions = 0;
    await using sentinel = await servePort((socket) => {
      socket.on('data', (data) => void reply(socket, data.toString().toLowerCase()));
    });
    await using gateway = await startGateway({
      gateway: { redisUrl: `redis+sentinel://127.0.0.1:${sentinel.port}/store` },
    });
    const lines = (text: string) => gateway.logLines.filter(({ msg }) => msg === text).length;
    await until(() => questions > 0 && subscribers.length > 0);
    await redis.kill();
    await redis.start();
    await until(() => questions > 1 && lines('Redis is unavailable') > 0);
    for (const socket of subscribers) socket.write(PUSHED);
    await new Promise((resolve) => void setTimeout(resolve, 50));
    release();
    await expect.poll(() => lines('Redis is available')).toBeGreaterThan(0);

    /** What a Sentinel says of the master: at once the first time, then once it is let. */
    async function reply(socket: Socket, command: string): Promise<void> {
      if (command.includes('get-master-addr')) {
        questions += 1;
        if (questions > 1) await isHeld;
        const { port } = new URL(redis.url);
        socket.write(`*2\r\n$9\r\n127.0.0.1\r\n$${port.length}\r\n${port}\r\n`);
      } else if (command.includes('switch-master')) {
        subscribers.push(socket);
        socket.write('*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n');
      } else if (command.includes('sentinels')) socket.write('*0\r\n');
      else socket.write("-ERR unknown command 'HELLO'\r\n".repeat(command.match(/^\*\d/gm)?.length ?? 0));
    }
  });

  test.each([
    ['knows no such name', 'other-store', SENTINEL_PASSWORD, 'no Sentinel names a master'],
    ['wants another password', 'pet-store', 'wrong-5e9', 'WRONGPASS of a Sentinel'],
  ])('and a Sentinel that %s is one line in the log, without a secret', async (_name, name, password, reason) => {
    const { gateway } = await startOverSentinel(name, password);
    const lines = () => gateway.logLines.filter(({ msg }) => msg === 'Redis is unavailable');
    await until(() => lines().length > 0);
    expect(lines()).toMatchObject([{ reason }]);
    expect(JSON.stringify(gateway.logLines)).not.toMatch(/b16b00|5e9|127\.0\.0\.1/);
  });
});
