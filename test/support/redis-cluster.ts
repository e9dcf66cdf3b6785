import { connect } from 'node:net';
import { freePort, servePort } from './serve.ts';
import { startRedis } from './redis-server.ts';
import type { RedisServer } from './redis-server.ts';
import { until } from './until.ts';

/** A Redis Cluster of masters, each behind a proxy through which its clock is as far ahead as a machine's may be. */
export interface RedisCluster extends AsyncDisposable {
  readonly nodes: readonly RedisServer[];
  /** Of its nodes, with commas between them. */
  readonly url: string;
}

const SLOTS = 16_384;

/** @param aheadMs of the clock of each node, as many as there are. */
export async function startRedisCluster(aheadMs: readonly number[]): Promise<RedisCluster> {
  const resources = new AsyncDisposableStack();
  const nodes: RedisServer[] = [];
  const urls: string[] = [];
  for (const [index, ahead] of aheadMs.entries()) {
    let target = 0;
    const proxy = resources.use(
      await servePort((socket) => {
        const node = connect(target, '127.0.0.1').on('error', () => socket.destroy());
        socket.on('data', (chunk) => node.write(chunk)).on('close', () => node.destroy());
        node.on('data', (chunk) => socket.write(shifted(chunk, ahead))).on('close', () => socket.destroy());
      }),
    );
    const bus = String(await freePort());
    const announced = { 'cluster-announce-ip': '127.0.0.1', 'cluster-announce-port': String(proxy.port) };
    const node = await startRedis({
      durable: true,
      settings: {
        'cluster-enabled': 'yes',
        'cluster-node-timeout': '1000',
        'cluster-port': bus,
        'cluster-announce-bus-port': bus,
        ...announced,
      },
    });
    resources.defer(() => node.close());
    target = Number(new URL(node.url).port);
    const [first, last] = [index, index + 1].map((part) => Math.floor((part * SLOTS) / aheadMs.length));
    await node.command('CLUSTER', 'ADDSLOTSRANGE', String(first), String((last ?? 0) - 1));
    await nodes[0]?.command('CLUSTER', 'MEET', '127.0.0.1', String(target), bus);
    nodes.push(node);
    urls.push(`redis://127.0.0.1:${proxy.port}`);
  }
  await until(async () => {
    const states = await Promise.all(nodes.map((node) => node.command('CLUSTER', 'INFO')));
    return states.every((state) => state.includes('cluster_state:ok'));
  });
  return { nodes, url: urls.join(), [Symbol.asyncDispose]: () => resources.disposeAsync() };
}

/** Moves the time in the replies of petql's script, which stays as long as it is. */
function shifted(chunk: Buffer, aheadMs: number): Buffer {
  const text = chunk.toString('latin1');
  const moved = text.replace(/(won|lost) (\d{13}) /g, (_match, won, ms) => `${won} ${Number(ms) + aheadMs} `);
  return Buffer.from(moved, 'latin1');
}
