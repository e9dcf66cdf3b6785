import { describe, expect, test } from 'vitest';
import { brokenPromises } from '../support/check.ts';
import { HANGS, fails, mixed, slow, tooMany } from '../support/pet-api/fault.ts';
import type { LoggedCall } from '../support/pet-api/pet-api.ts';
import { between, createRandom } from '../support/random.ts';
import type { Random } from '../support/random.ts';
import { createRedis, startReplicas } from '../support/redis-double.ts';
import { chooseCases, chooseSeed } from '../support/seed.ts';
import { DAY_MS, MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const SECOND_MS = 1_000;
const VISITORS = 5;
const LASTS_MS = 2 * MINUTE_MS;
const NEWCOMER_EVERY_MS = 5 * SECOND_MS;
/** What others may take at the same moment. */
const FEW = 2;
/** What else may arrive between a call's permit and its arrival; and what other replicas called since this one looked. */
const IN_FLIGHT_MS = { one: 250, many: 1_250 };

const CASES = [
  { replicas: 1, windows: 'sliding', perMinute: 40, perDay: 1_000, isHostile: false },
  { replicas: 1, windows: 'fixed', perMinute: 60, perDay: 70, isHostile: false },
  { replicas: 3, windows: 'sliding', perMinute: 60, perDay: 1_000, isHostile: false },
  { replicas: 1, windows: 'sliding', perMinute: 60, perDay: 1_000, isHostile: true },
  { replicas: 2, windows: 'fixed', perMinute: 50, perDay: 1_000, isHostile: true },
  { replicas: 3, windows: 'sliding', perMinute: 60, perDay: 90, isHostile: true },
] as const;

/** 429s, failures, silence and slow responses; or nothing. */
function faultsOf(isHostile: boolean) {
  if (!isHostile) return undefined;
  return mixed([
    [0.01, tooMany(3)],
    [0.05, fails()],
    [0.02, HANGS],
    [0.05, slow(3_000)],
  ]);
}

/** The calls of a visitor to one replica have ids and names of their own. */
function createVisitor(visitor: number, replicas: readonly Petql[], random: Random) {
  const known = replicas.map(() => [] as string[]);
  let last = 0;
  const idOf = (replica: number) => String(10_000_000 + visitor * 1_000_000 + replica * 100_000 + (last += 1));

  return async function act(): Promise<void> {
    const replica = between(random, 0, replicas.length - 1);
    const petql = replicas[replica] as Petql;
    const options = { visitor: `visitor ${visitor}`, waitMs: 5 * SECOND_MS };
    const choice = random();
    const ownKnown = known[replica] as string[];
    if (choice < 0.3) {
      const input = { name: `visitor ${visitor} at ${replica}, ${(last += 1)}`, categoryId: '1' };
      const document = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } } }';
      await petql.ask(document, { ...options, variables: { input } });
      return;
    }

    const count = between(random, 1, choice < 0.5 ? 30 : 3);
    const ids = Array.from({ length: count }, () => idOf(replica));
    const isAgain = choice > 0.8 && ownKnown.length > 0;
    if (!isAgain) ownKnown.push(...ids);
    const document = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';
    await petql.ask(document, { ...options, variables: { ids: isAgain ? ownKnown.slice(-20) : ids } });
  };
}

async function live(world: World, act: () => Promise<void>, random: Random): Promise<void> {
  const endMs = world.nowMs + LASTS_MS;
  const acts: Promise<void>[] = [];
  while (world.nowMs < endMs) {
    acts.push(act());
    await new Promise((resolve) => void setTimeout(resolve, between(random, 0, 3 * SECOND_MS)));
  }
  await Promise.all(acts);
}

/** Visitors who come once, and find some calls left. Returns the codes of those that were not served. */
async function newcomers(replicas: readonly Petql[], random: Random): Promise<string[]> {
  const refused: string[] = [];
  for (let number = 0; number < LASTS_MS / NEWCOMER_EVERY_MS; number += 1) {
    await new Promise((resolve) => void setTimeout(resolve, NEWCOMER_EVERY_MS));
    const petql = replicas[between(random, 0, replicas.length - 1)] as Petql;
    const [id, visitor] = [String(20_000_000 + number), `newcomer ${number}`];
    // Calls that become free while the read is refused come too late for it.
    const before = await leftFor(petql, visitor);
    const document = 'query ($id: ID!) { pet(id: $id) { id } }';
    const { errors = [] } = await petql.ask(document, { visitor, waitMs: 0, variables: { id } });
    const left = Math.min(before, await leftFor(petql, visitor));
    if (left > FEW) refused.push(...errors.map(({ extensions }) => extensions.code));
  }
  return refused;
}

async function leftFor(petql: Petql, visitor: string): Promise<number> {
  const { data } = await petql.ask('{ rateLimit { windows { remaining } } }', { visitor });
  return Math.min(...data?.['rateLimit'].windows.map(({ remaining }: { remaining: number }) => remaining));
}

/** Returns which visitor a call was for, and by which replica; undefined for lists. */
function ownerOf({ target, name }: LoggedCall): string | undefined {
  if (target === 'create')
    return /^visitor (\d) at (\d)/
      .exec(name ?? '')
      ?.slice(1)
      .join(' at ');
  const [, visitor, replica] = /^1(\d)(\d)\d{5}$/.exec(target) ?? [];
  return visitor === undefined ? undefined : `${visitor} at ${replica}`;
}

interface Window {
  readonly limit: number;
  readonly lengthMs: number;
}

/** The calls that were made though the visitor had used more than it left, but for those in flight. */
function unfair(log: readonly LoggedCall[], { limit, lengthMs }: Window, windows: string, replicas: number): string[] {
  const inFlightMs = replicas === 1 ? IN_FLIGHT_MS.one : IN_FLIGHT_MS.many;
  return log.flatMap((call, index) => {
    const owner = ownerOf(call);
    if (owner === undefined) return [];
    const fromMs = windows === 'fixed' ? call.atMs - (call.atMs % lengthMs) : call.atMs - lengthMs + 1;
    const before = log.slice(0, index).filter(({ atMs }) => atMs >= fromMs);
    const own = before.filter((each) => ownerOf(each) === owner).length;
    const inFlight = before.filter((each) => each.atMs > call.atMs - inFlightMs && ownerOf(each) !== owner).length;
    const left = limit - before.length + inFlight;
    const isFair = own === 0 || own * replicas < left;
    return isFair ? [] : [`visitor ${owner} made a call after ${own}, and left ${left} (${call.target})`];
  });
}

describe('over random visitors', () => {
  test.each(chooseCases(CASES, 2))(
    'none uses more than it leaves, and new ones are served (replicas: $replicas, $windows windows, $perMinute/$perDay, hostile: $isHostile)',
    async ({ replicas: count, windows, perMinute, perDay, isHostile }) => {
      const seed = chooseSeed();
      const random = createRandom(seed);
      await using world = await createWorld({
        seed,
        startsAt: '2026-11-21T09:41:20Z',
        keys: { key: { perMinute, perDay, windows, tells: 'changing' } },
      });
      const plan = `${perMinute}/${perDay}` as const;
      const replicas =
        count === 1
          ? [await world.start({ plan })]
          : await startReplicas(world, createRedis({ seed }), count, { plan });
      // They know each other, and that no list shows these pets.
      await world.until(Promise.all(replicas.map((petql) => petql.read(2))));
      await world.pass(20 * SECOND_MS);
      world.petApi.fault = faultsOf(isHostile);
      const visitors = Array.from({ length: VISITORS }, (_, visitor) => createVisitor(visitor, replicas, random));
      const coming = isHostile ? [] : newcomers(replicas, random);
      await world.until(Promise.all(visitors.map((act) => live(world, act, random))));
      expect(await world.until(Promise.resolve(coming)), `seed ${seed}`).toEqual([]);

      const { log } = world.petApi;
      const used = log.filter((call) => ownerOf(call) !== undefined);
      expect(used.length, `seed ${seed}`).toBeGreaterThan(Math.min(perMinute, perDay / 2));
      expect(unfair(log, { limit: perMinute, lengthMs: MINUTE_MS }, windows, count), `seed ${seed}`).toEqual([]);
      expect(unfair(log, { limit: perDay, lengthMs: DAY_MS }, windows, count), `seed ${seed}`).toEqual([]);
      expect(brokenPromises(world.history())).toEqual([]);
    },
  );
});
