import { PLANS } from '../../src/common/plan.ts';
import type { Answer } from './operation.ts';
import { createPetStore, petSeeds } from './pet-api/pet-store.ts';
import { createWorld } from './world.ts';
import type { OperationOptions, Petql, StartOptions, World, WorldOptions } from './world.ts';

/*
 * A petql that works, and clients of several API keys: what do the others get while something fails for one of them?
 */

export const KEYS = ['key', 'second', 'third', 'fourth'] as const;
const PLAN = { ...PLANS.business, windows: 'fixed', tells: 'minute' } as const;

export const LIST = '{ pets { id } }';
export const SOLD = '{ pets(status: SOLD) { id } }';
export const NO_CACHE: OperationOptions = { cacheControl: 'no-cache' };

/** No list shows it: lists show ids below 300. */
export const HIDDEN = '700';
/** The list of all shows them. */
export const SHOWN = ['5', '6', '7', '8', '9'] as const;

/** A world with 1,200 pets, of which a list shows 100; with `pets` in one that has so many. */
export function createFailingWorld({
  pets,
  ...options
}: Partial<WorldOptions> & { pets?: number } = {}): Promise<World> {
  const store = pets === undefined ? undefined : createPetStore({ pets: petSeeds(pets) });
  return createWorld({
    seed: 65,
    startsAt: '2026-11-21T09:41:07Z',
    keys: Object.fromEntries([...KEYS, ...FORTY_KEYS].map((key) => [key, PLAN])),
    ...(store && { storeOf: () => store }),
    ...options,
  });
}

export const FORTY_KEYS = Array.from({ length: 40 }, (_, index) => `client-${index}`);

/** Starts a petql whose keys the pet API has accepted, and some seconds pass. */
export async function startProven(
  world: World,
  options: StartOptions = {},
  keys: readonly string[] = KEYS,
): Promise<Petql> {
  const petql = await world.start({ plan: 'business', maxWaitMs: 2_000, ...options });
  await prove(world, petql, keys);
  return petql;
}

export async function prove(world: World, petql: Petql, keys: readonly string[] = KEYS): Promise<void> {
  for (const key of keys) {
    // Enough for a retry, and for several calls at a time.
    for (let call = 0; call < 10; call += 1) await world.until(petql.ask(LIST, { key, ...NO_CACHE }));
    await world.until(petql.ask(SOLD, { key }));
    await world.until(petql.ask(pet(HIDDEN), { key }));
  }
  await world.pass(2_000);
  world.petApi.log.length = 0;
}

export const pet = (id: string) => `{ pet(id: "${id}") { id } }`;

export const petsPage = (ids: readonly string[]) => `{ petsById(ids: ${JSON.stringify(ids)}) { id } }`;

export const idsFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => String(first + index));

/** What became of an operation: `fresh`, `stale`, or the codes of its errors. */
export function resultOf({ errors = [], extensions }: Answer): string {
  if (errors.length > 0) return [...new Set(errors.map((error) => error.extensions.code))].join(' ');
  return extensions?.petql?.staleReason === undefined ? 'fresh' : 'stale';
}

/** Sends one operation, and returns what became of it. */
export async function ask(world: World, petql: Petql, document: string, options?: OperationOptions) {
  return resultOf(await world.until(petql.ask(document, options)));
}

/** Creates one pet. Returns `fresh` for a success. */
export async function create(world: World, petql: Petql, options?: OperationOptions): Promise<string> {
  return resultOf(await world.until(petql.create(1, options)));
}

export interface Tally {
  fresh: number;
  stale: number;
  failed: number;
  created: number;
  notCreated: number;
  /** The codes of all errors. */
  readonly codes: Set<string>;
}

export interface HonestLoad {
  readonly durationMs: number;
  /** Default 1 s. */
  readonly everyMs?: number;
  /** Default: all four. They take turns. */
  readonly keys?: readonly string[];
  /** Default: a list, a pet that no list shows, and a create. */
  readonly wants?: readonly ('create' | 'list' | 'pet' | 'sold')[];
  readonly options?: OperationOptions;
}

/** Clients who want something all the time, and wait for nothing; time passes by `world.until`. Returns what they got. */
export async function work(world: World, petql: Petql, load: HonestLoad): Promise<Tally> {
  const { durationMs, everyMs = 1_000, keys = KEYS, wants = ['list', 'pet', 'create'], options = {} } = load;
  const tally: Tally = { fresh: 0, stale: 0, failed: 0, created: 0, notCreated: 0, codes: new Set() };
  const asked: Promise<void>[] = [];

  const endMs = world.nowMs + durationMs;
  for (let turn = 0; world.nowMs < endMs; turn += 1) {
    const key = keys[turn % keys.length];
    for (const want of wants) asked.push(send(want, turn, { waitMs: 2_000, ...(key && { key }), ...options }));
    await sleep(everyMs);
  }
  await Promise.all(asked);
  return tally;

  async function send(want: string, turn: number, more: OperationOptions): Promise<void> {
    const document = { list: LIST, sold: SOLD }[want] ?? pet(String(700 + (turn % 200)));
    const answer = await (want === 'create' ? petql.create(1, more) : petql.ask(document, more));
    const became = resultOf(answer);
    for (const { extensions } of answer.errors ?? []) tally.codes.add(extensions.code);
    if (want === 'create') tally[became === 'fresh' ? 'created' : 'notCreated'] += 1;
    else tally[became === 'fresh' || became === 'stale' ? became : 'failed'] += 1;
  }
}

export interface StrangeLoad {
  readonly documents: readonly string[];
  readonly durationMs: number;
  /** Default 50. */
  readonly perSecond?: number;
}

/** Made-up keys, so many a second, each with one of these operations in turn; time passes by `world.until`. */
export async function sendStrangers(
  world: World,
  petql: Petql,
  { documents, durationMs, perSecond = 50 }: StrangeLoad,
): Promise<void> {
  const asked: Promise<Answer>[] = [];
  for (let stranger = 0; stranger < (durationMs / 1_000) * perSecond; stranger += 1) {
    const document = documents[stranger % documents.length] ?? LIST;
    asked.push(petql.ask(document, { key: `made-up-${world.nowMs}-${stranger}`, waitMs: 500 }));
    await sleep(1_000 / perSecond);
  }
  await Promise.all(asked);
}

/** The lines at the level of `info` and above, those of one message only. */
export function linesOf({ logLines }: Petql, ...messages: readonly string[]) {
  return logLines.filter(({ level, msg }) => level >= 30 && (messages.length === 0 || messages.includes(String(msg))));
}

export const API_CLOSES = 'the pet API fails, and petql makes one call at a time';
export const API_OPENS = 'the pet API works again';
export const LIST_CLOSES = 'a list of the pet API fails, and petql calls without it';
export const LIST_OPENS = 'the list works again';
export const GETS_CLOSE = 'the pet API responds to single pets as if it had no such route; petql probes it';
export const GETS_OPEN = 'the pet API has this route again';

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
