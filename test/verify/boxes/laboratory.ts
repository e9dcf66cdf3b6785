import { setTimeout as sleep } from 'node:timers/promises';
import { attempt } from '../../support/client.ts';
import { createPetApi } from '../../support/pet-api/pet-api.ts';
import type { PetApi } from '../../support/pet-api/pet-api.ts';
import { createPetStore, petSeeds } from '../../support/pet-api/pet-store.ts';
import { UNLIMITED } from '../../support/pet-api/strict-plan.ts';
import { startPetql } from '../../support/run-petql.ts';
import type { PetqlProcess } from '../../support/run-petql.ts';
import type { Random } from '../../support/random.ts';
import { Tally } from '../../support/tally.ts';
import { startBox } from './box.ts';
import type { Box, BoxKind } from './box.ts';

/** petql between two boxes, of which one or both are real. */
export interface Laboratory {
  readonly petApi: PetApi;
  readonly petql: PetqlProcess;
  /** Before the pet API. */
  readonly inner: Box | undefined;
  /** What clients call: the box before petql, or petql itself. */
  readonly endpoint: string;
}

interface LaboratoryOptions {
  /** The box before the pet API. `UPSTREAM` in it is the address of the pet API. */
  readonly inner?: readonly [kind: BoxKind, config: string];
  /** The box before petql. `UPSTREAM` in it is the address of petql. */
  readonly outer?: readonly [kind: BoxKind, config: string];
}

/** Few enough for one list, so that a cache that hides a pet shows. */
const PETS = 30;

/** Starts all of it; `resources` close it. The pet API has a store for each key, and no limit of its own. */
export async function openLaboratory(
  resources: AsyncDisposableStack,
  { inner, outer }: LaboratoryOptions,
): Promise<Laboratory> {
  const stores = new Map<string, ReturnType<typeof createPetStore>>();
  const petApi = createPetApi({
    planOf: () => UNLIMITED,
    storeOf(key) {
      const store = stores.get(key) ?? createPetStore({ pets: petSeeds(PETS) });
      stores.set(key, store);
      return store;
    },
  });
  const api = resources.use(await petApi.listen());
  const innerBox = inner && resources.use(await startBox(inner[0], to(inner[1], api.origin)));
  const petApiUrl = `${innerBox?.origin ?? api.origin}/v1`;
  const petql = await startPetql(['--port', '0', '--pet-api-url', petApiUrl, '--plan', '100000/10000000']);
  resources.defer(async () => {
    petql.kill('SIGKILL');
    await petql.exited;
  });
  const outerBox = outer && resources.use(await startBox(outer[0], to(outer[1], new URL(petql.address).origin)));
  const endpoint = outerBox ? `${outerBox.origin}/graphql` : petql.address;
  return { petApi, petql, inner: innerBox, endpoint };
}

/** @param config has `UPSTREAM` for the host and port. */
export function to(config: string, origin: string): string {
  const { host, hostname, port } = new URL(origin);
  return config.replaceAll('UPSTREAM_HOST', hostname).replaceAll('UPSTREAM_PORT', port).replaceAll('UPSTREAM', host);
}

const CREATE = 'mutation ($name: String!) { createPet(input: { name: $name, categoryId: 1 }) { pet { id name } } }';
const CREATED = 'each create that succeeded is in the store once, and each that failed is not';
const TOLD = 'an error has a code, and never the page of a box';
const FEW_UNKNOWN = 'few creates have an unknown outcome';

export interface CreateLoad {
  readonly keys: number;
  readonly seconds: number;
  /** The mean pause between two creates of a key. */
  readonly everyMs: number;
  /** How many of a thousand creates may be unknown. */
  readonly maxUnknownPerMille: number;
}

/** Creates pets at random moments, and compares what clients were told with the store. */
export async function createPets(
  { endpoint, petApi }: Pick<Laboratory, 'endpoint' | 'petApi'>,
  random: Random,
  { keys, seconds, everyMs, maxUnknownPerMille }: CreateLoad,
) {
  const [created, told, unknown] = [new Tally(CREATED), new Tally(TOLD), new Tally(FEW_UNKNOWN)];
  const counts = new Map<string, number>();
  const endMs = performance.now() + seconds * 1_000;
  await Promise.all(
    Array.from({ length: keys }, async (_, index) => {
      const key = `key-${index}`;
      for (let number = 0; performance.now() < endMs; number += 1) {
        await sleep(2 * everyMs * random());
        await createOne(key, `${key} ${number}`);
      }
    }),
  );
  const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const unknowns = counts.get('OUTCOME_UNKNOWN') ?? 0;
  if (unknowns * 1_000 > all * maxUnknownPerMille)
    unknown.look(`${unknowns} of ${all}, ${maxUnknownPerMille} of 1,000 may`);
  else unknown.look();
  created.measured = [...counts].map(([code, count]) => `${count} ${code}`).join(', ');
  return [created, told, unknown];

  async function createOne(key: string, name: string): Promise<void> {
    const headers = { authorization: `Bearer ${key}`, prefer: 'wait=5' };
    const outcome = await attempt(endpoint, CREATE, { variables: { name }, headers });
    const text = JSON.stringify(outcome);
    const isAnswered = outcome.kind === 'answered';
    const code = isAnswered ? (outcome.answer.errors?.[0]?.extensions.code ?? 'created') : outcome.kind;
    counts.set(code, (counts.get(code) ?? 0) + 1);
    told.look(isAnswered && !/<html|<h1>/i.test(text) ? undefined : text.slice(0, 300));

    const added = petApi.storeOf(key).addedAs(name).length;
    const isRight = code === 'OUTCOME_UNKNOWN' ? added <= 1 : added === (code === 'created' ? 1 : 0);
    created.look(isRight ? undefined : `${name}: ${code}, and added ${added} times`);
  }
}
