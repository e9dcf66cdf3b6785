import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { fails, on } from '../support/pet-api/fault.ts';
import type { EmbeddedGateway, startEmbedded } from '../support/start-gateway.ts';
import { copyPetql } from '../verify/changed-copy.ts';
import type { ChangedCopy } from '../verify/changed-copy.ts';

/** A second reader with a cache of its own, as another resource would be: here it reads the pet 7. */
const SECOND = `
    const other = new PetReads({ ...parts, cache: new PetCache(memory, clock, this.#quota.closed) }, undefined);
    const loadOwn = reads.load.bind(reads);
    reads.load = (keys, request) => (keys.includes('7') ? other.load(keys, request) : loadOwn(keys, request));
    readers.push(reads.line, other.line);`;

let copy: ChangedCopy;
let start: typeof startEmbedded;

beforeAll(async () => {
  copy = await copyPetql({ from: 'readers.push(reads.line);', to: SECOND });
  const { href } = pathToFileURL(`${copy.folder}/test/support/start-gateway.ts`);
  ({ startEmbedded: start } = (await import(href)) as { startEmbedded: typeof startEmbedded });
});

afterAll(() => copy[Symbol.asyncDispose]());

const ask = ({ execute }: EmbeddedGateway, document: string) => execute({ document, apiKey: 'key' });
const LIST = '{ pets(status: SOLD, limit: 1) { status } }';
const SEVEN = '{ pet(id: 7) { id } }';

test('two readers of one key stand in its line, and each gets its calls', async () => {
  await using gateway = await start({}, { keys: { key: { perMinute: 60, perDay: 1_000 } } });
  const [list, seven] = await Promise.all([ask(gateway, LIST), ask(gateway, SEVEN)]);
  expect(list.data).toEqual({ pets: [{ status: 'SOLD' }] });
  expect(seven.data).toEqual({ pet: { id: '7' } });
  expect(gateway.petApi.log).toHaveLength(2);
});

test('they share its plan: the last call of a minute is for one of them', async () => {
  const petApi = { pets: petSeeds(50), keys: { key: { perMinute: 2, perDay: 1_000 } } };
  await using gateway = await start({ plan: '2/1000', maxWaitMs: 0 }, petApi);
  await ask(gateway, '{ pets(status: PENDING) { id } }');
  const answers = await Promise.all([ask(gateway, LIST), ask(gateway, SEVEN)]);
  expect(gateway.petApi.log.map(({ status }) => status)).toEqual([200, 200]);
  expect(answers.flatMap(({ errors = [] }) => errors.map(({ extensions }) => extensions?.['code']))).toEqual([
    'RATE_LIMITED',
  ]);
});

test('what fails for one of them ends its reads alone', async () => {
  await using gateway = await start({}, { keys: { key: { perMinute: 60, perDay: 1_000 } } });
  gateway.petApi.fault = on('sold', fails(400));
  const [list, seven] = await Promise.all([ask(gateway, LIST), ask(gateway, SEVEN)]);
  expect(list.errors).toHaveLength(1);
  expect(seven.data).toEqual({ pet: { id: '7' } });
});
