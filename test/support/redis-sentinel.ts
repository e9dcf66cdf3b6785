import { startRedis } from './redis-server.ts';
import type { RedisServer } from './redis-server.ts';
import { until } from './until.ts';

/** A master and a replica of Redis, and three Sentinels, two of which decide on a failover. */
export interface RedisSentinel extends AsyncDisposable {
  /** Of the Sentinels. */
  readonly url: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
  readonly sentinels: readonly RedisServer[];
  /** Cuts the replica off: a failover then loses what is written from now on. */
  readonly stopReplication: () => Promise<void>;
  /** Settles once the replica is the master. */
  readonly failedOver: () => Promise<void>;
}

const NAME = 'pet-store';

/** @param failsOverAfterMs without the master. */
export async function startRedisSentinel(failsOverAfterMs = 1_000): Promise<RedisSentinel> {
  await using starting = new AsyncDisposableStack();
  const start = async (options?: Parameters<typeof startRedis>[0]) => {
    const server = await startRedis(options);
    starting.defer(() => server.close());
    return server;
  };
  const portOf = ({ url }: RedisServer) => new URL(url).port;

  const master = await start();
  const replica = await start({ settings: { replicaof: `127.0.0.1 ${portOf(master)}` } });
  const isLinked = async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up');
  await until(isLinked);

  const sentinel = [
    `sentinel monitor ${NAME} 127.0.0.1 ${portOf(master)} 2`,
    `sentinel down-after-milliseconds ${NAME} ${failsOverAfterMs}`,
    `sentinel failover-timeout ${NAME} 5000`,
  ].join('\n');
  const sentinels = await Promise.all([1, 2, 3].map(() => start({ sentinel })));
  await until(async () => {
    const states = await Promise.all(sentinels.map((one) => one.command('SENTINEL', 'MASTER', NAME)));
    return states.every(
      (state) => /num-slaves\r\n\$1\r\n1\r\n/.test(state) && /other-sentinels\r\n\$1\r\n2/.test(state),
    );
  });

  const started = starting.move();
  return {
    url: `redis+sentinel://${sentinels.map((one) => `127.0.0.1:${portOf(one)}`).join()}/${NAME}`,
    master,
    replica,
    sentinels,
    async stopReplication() {
      // The master has no password, so it rejects the replica's next connection.
      await replica.command('CONFIG', 'SET', 'masterauth', 'none');
      await replica.command('CLIENT', 'KILL', 'TYPE', 'master');
      await until(async () => !(await isLinked()));
    },
    // A Sentinel ends the connections to the replica that it promotes.
    failedOver: () => until(async () => (await replica.command('ROLE').catch(() => '')).includes('master')),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
