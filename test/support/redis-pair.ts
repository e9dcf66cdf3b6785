import { connect } from 'node:net';
import { startRedis } from './redis-server.ts';
import { servePort } from './serve.ts';
import { until } from './until.ts';

/** A Redis with a replica, under one address, as behind a name or a virtual address. */
export interface RedisPair {
  readonly url: string;
  /** A planned failover: they change places, and the connections to the old master stand. */
  readonly changePlaces: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export async function startRedisPair(): Promise<RedisPair> {
  const [master, replica] = await Promise.all([startRedis(), startRedis()]);
  const portOf = ({ url }: typeof master) => new URL(url).port;
  await replica.command('REPLICAOF', '127.0.0.1', portOf(master));
  await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'));
  let current = master;
  const address = await servePort((from) => {
    const to = connect(Number(portOf(current)), '127.0.0.1');
    from.pipe(to).pipe(from);
    for (const socket of [from, to]) socket.on('error', () => {}).on('close', () => (from.destroy(), to.destroy()));
  });
  return {
    url: `redis://127.0.0.1:${address.port}`,
    async changePlaces() {
      await replica.command('REPLICAOF', 'NO', 'ONE');
      await master.command('REPLICAOF', '127.0.0.1', portOf(replica));
      current = replica;
    },
    async close() {
      await address[Symbol.asyncDispose]();
      await Promise.all([master.close(), replica.close()]);
    },
  };
}
