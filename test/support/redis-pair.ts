import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { startRedis } from './redis-server.ts';
import { until } from './until.ts';

/** A Redis with a replica, under one address, as behind a name or a virtual address. */
export interface RedisPair {
  readonly url: string;
  /** How many connections were made. */
  connections(): number;
  /** Ends all connections; the next ones lead where these did. */
  cut(): void;
  /** The master loses all that it holds, and connections stand. */
  empty(): Promise<void>;
  /** From now on nothing is replicated any more: it is what a failover loses. */
  part(): Promise<void>;
  /** The master dies, and the replica takes its place. */
  failOver(): Promise<void>;
  /** They change places. The connections to the old master stand. */
  changePlaces(): Promise<void>;
  close(): Promise<void>;
}

export async function startRedisPair(): Promise<RedisPair> {
  const [master, replica] = await Promise.all([startRedis(), startRedis()]);
  await replica.command('REPLICAOF', '127.0.0.1', portOf(master.url));
  await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'));
  const sockets = new Set<Socket>();
  let leadsTo = portOf(master.url);
  let connections = 0;
  const server = createServer((from) => {
    connections += 1;
    const to = connect(Number(leadsTo), '127.0.0.1');
    from.pipe(to).pipe(from);
    for (const socket of [from, to]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => (from.destroy(), to.destroy()));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  const part = async () => void (await replica.command('REPLICAOF', 'NO', 'ONE'));
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => connections,
    cut,
    empty: async () => void (await master.command('FLUSHALL')),
    part,
    async failOver() {
      await part();
      leadsTo = portOf(replica.url);
      cut();
      await master.kill();
    },
    async changePlaces() {
      await part();
      await master.command('REPLICAOF', '127.0.0.1', portOf(replica.url));
      leadsTo = portOf(replica.url);
    },
    async close() {
      cut();
      server.close();
      await Promise.all([master.close(), replica.close()]);
    },
  };
}

function portOf(url: string): string {
  return new URL(url).port;
}
