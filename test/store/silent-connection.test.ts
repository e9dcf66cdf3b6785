import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { connectRedis } from '../../src/store/redis.ts';
import type { RedisScript, RedisStore } from '../../src/store/redis.ts';
import { createReplicas } from '../../src/throttle/replicas.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';
import { until } from '../support/until.ts';

const TIMEOUT_MS = 30_000;
const ECHO: RedisScript = { name: 'petqlEcho', source: 'return ARGV[1]' };
const TELL: RedisScript = { name: 'petqlTell', source: "redis.call('PUBLISH', KEYS[1], ARGV[1]) return ''" };

describe.skipIf(!redisIsHere)('a connection to Redis', () => {
  const real = useRedis();
  const open: { close(): void }[] = [];
  afterEach(() => {
    for (const one of open.splice(0)) one.close();
  });

  function opened<One extends { close(): void }>(one: One): One {
    open.push(one);
    return one;
  }

  function client(url: string): RedisStore {
    return opened(connectRedis({ url }));
  }

  test(
    'that nothing comes through any more is given up for another',
    async () => {
      const way = opened(await startWay(real.server.url));
      const redis = client(way.url);
      expect(await redis.run(ECHO, 'key', 'before')).toBe('before');
      way.forgetConnections();
      await expect(redis.run(ECHO, 'key', 'silent')).rejects.toThrow('timed out');
      await until(async () => (await redis.run(ECHO, 'key', 'after').catch(() => '')) === 'after');
      expect(way.connections()).toBeGreaterThan(1);
    },
    TIMEOUT_MS,
  );

  test(
    'that is listened on and goes silent is given up too, and what was said meanwhile is known to be unknown',
    async () => {
      const way = opened(await startWay(real.server.url));
      const heard: string[] = [];
      const end = client(way.url).subscribe('told', {
        onMessage: (text) => heard.push(text),
        onGap: () => heard.push('gap'),
      });
      await until(() => heard.includes('gap'));
      const tell = (text: string) => real.redis.run(TELL, 'told', text);
      await tell('before');
      await until(() => heard.includes('before'));
      way.forgetConnections();
      await tell('silent');
      await until(() => heard.length === 3);
      await tell('after');
      await until(() => heard.includes('after'));
      expect(heard).toEqual(['gap', 'before', 'gap', 'after']);
      end();
    },
    TIMEOUT_MS,
  );

  test('whose user may not tell the others anything counts as away, and the log says why', async () => {
    await real.server.command('ACL', 'SETUSER', 'mute', 'on', '>secret', '~petql:*', '+@all', 'resetchannels');
    const url = new URL(real.server.url);
    Object.assign(url, { username: 'mute', password: 'secret' });
    const { log, lines } = createMemoryLog();
    const replicas = opened(createReplicas(client(url.href), 'one', log));
    await until(() => !replicas.redisWorks);
    expect(lines).toMatchObject([{ msg: 'Redis is away', reason: expect.stringMatching(/publish|NOPERM/) }]);
  });
});

/** What lies between a client and Redis, and forgets connections as a firewall does: they stand, and nothing comes through. */
async function startWay(redisUrl: string) {
  const sockets = new Set<Socket>();
  const forgotten = new Set<Socket>();
  const { port: target } = new URL(redisUrl);
  let connections = 0;
  const server = createServer((from) => {
    connections += 1;
    const to = connect(Number(target), '127.0.0.1');
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const) {
      sockets.add(one);
      one.on('data', (bytes) => forgotten.has(one) || other.write(bytes));
      one.on('error', () => {}).on('close', () => other.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    forgetConnections() {
      for (const socket of sockets) forgotten.add(socket);
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
