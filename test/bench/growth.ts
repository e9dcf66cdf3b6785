import { startProcess, untilListening } from './bench-process.ts';
import type { BenchProcess } from './bench-process.ts';
import { PETQL } from './build-petql.ts';
import { load } from './load.ts';
import { graphqlRequest } from './request-text.ts';
import { spread } from './statistics.ts';
import type { Spread } from './statistics.ts';

/** How petql's cost of one operation grows with something. */
export interface Growth {
  readonly title: string;
  readonly unit: string;
  readonly points: readonly { readonly size: number; readonly micros: Spread }[];
}

export interface GrowthOptions {
  readonly upstream: BenchProcess;
  readonly core: number | undefined;
  readonly durationMs: number;
  readonly rounds: number;
}

type Operation = Parameters<typeof graphqlRequest>[0];

const ONE: Operation = { query: '{ pet(id: "42") { id name status } }' };
/** The upstream never answers these. */
const STUCK_FROM = 1_000_000;
const DEMANDS_A_REQUEST = 100;

/** One petql for all of it, with a wait so long that whoever waits goes on waiting. */
export async function measureGrowth({ upstream, core, durationMs, rounds }: GrowthOptions): Promise<Growth[]> {
  const args = ['--plan', '100000000/900000000', '--max-age-ms', '600000', '--max-wait-ms', '600000'];
  const env = { PET_API_URL: `http://127.0.0.1:${upstream.port}/v1`, UPSTREAM_TIMEOUT_MS: '600000' };
  const petql = await startProcess({ program: PETQL, args, env, core });
  await untilListening(petql.port);
  const keysOf = (count: number) =>
    Array.from({ length: count }, (_, index) => graphqlRequest(ONE, count === 1 ? 'caller' : `caller-${index}`));

  const growth = [
    await series('An answer from memory, by its animals', 'animals', [1, 10, 100], (size) => [
      graphqlRequest({ query: `{ pets(limit: ${size}) { id name categoryId status } }` }, 'caller'),
    ]),
    await series('An answer from memory, by its aliases', 'aliases', [1, 10, 100], (size) => {
      const aliases = Array.from({ length: size }, (_, index) => `a${index}: pet(id: "${index + 1}") { name }`);
      return [graphqlRequest({ query: `{ ${aliases.join(' ')} }` }, 'caller')];
    }),
    await series(
      'One animal, by the keys that ask in turn (memory holds 20,000 of them)',
      'keys',
      [1, 1_000, 100_000],
      keysOf,
    ),
  ];
  const alone = await beside(0);
  growth.push(
    {
      title: 'One demand that joins so many that wait, by how many there are then',
      unit: 'waiting demands',
      points: await waitingDemands([100, 1_000, 10_000]),
    },
    {
      title: 'One animal from memory, beside so many demands of the same key that wait',
      unit: 'waiting demands',
      points: [alone, await beside(10_000)],
    },
  );
  // Whoever waits would be waited for.
  await petql.stop();
  return growth;

  async function beside(size: number) {
    return { ...(await pointOf(keysOf(1))), size };
  }

  async function series(title: string, unit: string, sizes: readonly number[], requestsOf: (size: number) => Buffer[]) {
    const points = [];
    for (const size of sizes) points.push({ size, ...(await pointOf(requestsOf(size))) });
    return { title, unit, points };
  }

  async function pointOf(requests: readonly Buffer[]) {
    await fill(requests);
    const micros = [];
    for (let round = 0; round < rounds; round += 1) micros.push(await microsOf(requests));
    return { micros: spread(micros) };
  }

  /** Each is asked once, so that memory can answer it. */
  async function fill(requests: readonly Buffer[]): Promise<void> {
    let next = 0;
    while (next < requests.length) {
      const request = () => requests[next++ % requests.length] as Buffer;
      await load({ port: petql.port, connections: Math.min(64, requests.length), durationMs: 500, request });
    }
  }

  /** What the process spent on each operation. */
  async function microsOf(requests: readonly Buffer[]): Promise<number> {
    let next = 0;
    const request = () => requests[next++ % requests.length] as Buffer;
    const before = await cpuMicros();
    const { operations } = await load({ port: petql.port, connections: 64, durationMs, request });
    return ((await cpuMicros()) - before) / operations;
  }

  /** Nobody waits for the answers: there are none. */
  async function waitingDemands(sizes: readonly number[]) {
    const points = [];
    let waiting = 0;
    for (const size of sizes) {
      const before = await cpuMicros();
      const added = size - waiting;
      while (waiting < size) {
        const ids = Array.from({ length: DEMANDS_A_REQUEST }, (_, index) => String(STUCK_FROM + waiting + index));
        void ask(
          graphqlRequest(
            { query: 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', variables: { ids } },
            'caller',
          ),
        );
        waiting += DEMANDS_A_REQUEST;
      }
      // Answered after all of these, since there is one thread.
      await ask(graphqlRequest(ONE, 'caller'));
      points.push({ size, micros: spread([((await cpuMicros()) - before) / added]) });
    }
    return points;
  }

  async function ask(request: Buffer): Promise<void> {
    await load({ port: petql.port, connections: 1, durationMs: 0, request: () => request }).catch(() => undefined);
  }

  async function cpuMicros(): Promise<number> {
    return (await petql.ask<{ cpuMicros: number }>('usage')).cpuMicros;
  }
}
