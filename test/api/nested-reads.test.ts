import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { GatewayOptions } from '../../src/index.ts';
import type { EmbeddedGateway, startEmbedded } from '../support/start-gateway.ts';
import { copyPetql } from '../verify/changed-copy.ts';
import type { ChangedCopy } from '../verify/changed-copy.ts';

/** A field of a pet that reads another pet: a copy of petql has it, since petql has no field below a list that reads. */
const TWIN = `
      twin: t.field({
        type: 'ID',
        extensions: { sizeOf: () => ({ use: 'pet', items: 1, count: 1 }) },
        resolve: async ({ id }, _args, { pets }) => (await pets.read(String(Number(id) + 200)))?.id,
      }),
      status: t.expose('status', {`;

let copy: ChangedCopy;
let startCopy: typeof startEmbedded;

beforeAll(async () => {
  copy = await copyPetql({ from: "status: t.expose('status', {", to: TWIN });
  const { href } = pathToFileURL(`${copy.folder}/test/support/start-gateway.ts`);
  ({ startEmbedded: startCopy } = (await import(href)) as { startEmbedded: typeof startEmbedded });
});

afterAll(() => copy[Symbol.asyncDispose]());

const TWINS = '{ pets(limit: 60) { id twin } }';

const start = (options: Partial<GatewayOptions> = {}): Promise<EmbeddedGateway> => startCopy(options);
const ask = ({ execute }: EmbeddedGateway, document: string, options: { dryRun?: boolean } = {}) =>
  execute({ document, apiKey: 'demo-business', ...options });

interface Cost {
  readonly oldestAgeMs?: number;
  readonly dryRun?: { readonly upstreamCalls: number };
}

const costOf = ({ extensions }: Awaited<ReturnType<typeof ask>>) => (extensions?.['petql'] ?? {}) as Cost;

test('rateLimit counts the calls of reads that depend on others beside it', async () => {
  await using gateway = await start();
  const { data } = await ask(gateway, '{ pet(id: 3) { twin } rateLimit { windows { used } } }');
  expect(data).toEqual({ pet: { twin: '203' }, rateLimit: { windows: [{ used: gateway.petApi.log.length }] } });
});

test('a dry run tells of the calls that reads below a list can need', async () => {
  await using gateway = await start({ maxUpstreamCalls: 1_000 });
  const dry = await ask(gateway, TWINS, { dryRun: true });
  const run = await ask(gateway, TWINS);
  expect(run.errors).toBeUndefined();
  expect(gateway.petApi.log.length).toBeGreaterThan(1);
  expect(costOf(dry).dryRun?.upstreamCalls).toBeGreaterThanOrEqual(gateway.petApi.log.length);
});

test('the limits of calls and of cost count reads below a list once for each item', async () => {
  await using gateway = await start({ maxUpstreamCalls: 50 });
  expect((await ask(gateway, TWINS)).errors).toMatchObject([{ extensions: { limit: 'upstreamCalls', max: 50 } }]);
  await using strict = await start({ maxCost: 1_000 });
  expect((await ask(strict, TWINS)).errors).toMatchObject([{ extensions: { limit: 'cost', max: 1_000 } }]);
  expect([...gateway.petApi.log, ...strict.petApi.log]).toEqual([]);
});

test('a response that is repeated is as old as the oldest of all that it is made of', async () => {
  await using gateway = await start({ maxAgeMs: 60_000 });
  await ask(gateway, '{ pet(id: 203) { id } }');
  const first = await ask(gateway, '{ pet(id: 3) { id twin } }');
  const calls = gateway.petApi.log.length;
  const again = await ask(gateway, '{ pet(id: 3) { id twin } }');
  expect(again.data).toEqual(first.data);
  expect(gateway.petApi.log).toHaveLength(calls);
  expect(costOf(again).oldestAgeMs).toBeGreaterThanOrEqual(costOf(first).oldestAgeMs ?? Infinity);
});
