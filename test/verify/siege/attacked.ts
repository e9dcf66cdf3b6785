/** The process that is attacked: petql over the pet API at an address. It reports its state on request. */
import { once } from 'node:events';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createGateway } from '../../../src/gateway.ts';
import { listen } from '../../../src/server/listener.ts';

/** How the process fares. */
export interface Fared {
  /** How late its event loop is, in milliseconds. */
  readonly delayP99Ms: number;
  readonly delayMaxMs: number;
  readonly heapMegabytes: number;
  readonly residentMegabytes: number;
}

const [, , petApiUrl = ''] = process.argv;
const gateway = createGateway({
  petApiUrl,
  plan: { perMinute: 10_000_000, perDay: 100_000_000, known: true },
  log: { info() {}, warn() {}, error() {} },
});
const listener = await listen(gateway.handle, { host: '127.0.0.1', port: 0 });
// Each millisecond, so that it says by how much each of them was late.
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
process.send?.({ origin: listener.origin });

process.on('message', (asked) => {
  if (asked === 'reset') delay.reset();
  if (asked !== 'fared') return;
  const { heapUsed, rss } = process.memoryUsage();
  const fared: Fared = {
    delayP99Ms: delay.percentile(99) / 1e6,
    delayMaxMs: delay.max / 1e6,
    heapMegabytes: heapUsed / 1e6,
    residentMegabytes: rss / 1e6,
  };
  process.send?.(fared);
});
await once(process, 'disconnect');
process.exit(0);
