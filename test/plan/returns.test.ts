import { expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { brokenPromises } from '../support/check.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const FREE = PLANS.free;

/** A client that follows README's recipe: it comes back when it is told to, as long as the minute alone keeps it waiting. */
async function readUntilServed(world: World, petql: Petql, id: string) {
  const toldMs: number[] = [];
  for (;;) {
    const { errors } = await petql.ask('query ($id: ID!) { pet(id: $id) { id } }', {
      variables: { id },
      waitMs: 10_000,
    });
    const refused = errors?.[0]?.extensions;
    if (!refused) return { toldMs, servedMs: world.nowMs };
    expect(refused).toMatchObject({ code: 'RATE_LIMITED', window: 'MINUTE' });
    toldMs.push(world.nowMs + (refused.retryAfterMs ?? 0));
    await new Promise((resolve) => void setTimeout(resolve, refused.retryAfterMs));
  }
}

/** Returns the most times that lie in one minute, wherever it begins. */
function mostInAMinute(times: readonly number[]): number {
  return Math.max(...times.map((fromMs) => times.filter((ms) => ms >= fromMs && ms < fromMs + MINUTE_MS).length));
}

test.each([
  ['fixed', 'minute'],
  ['sliding', 'minute'],
  ['fixed', 'day'],
] as const)(
  '300 clients of a Free key return one minute after the other, and are all served (%s windows, headers of the %s)',
  async (windows, tells) => {
    const startsAt = '2026-11-21T09:41:20Z';
    await using world = await createWorld({ seed: 51, startsAt, keys: { key: { ...FREE, windows, tells } } });
    const petql = await world.start({ plan: 'free' });
    // From here on petql knows that no list shows these pets, so that each needs a call.
    await world.until(petql.read(3));

    const startMs = world.nowMs;
    const ids = Array.from({ length: 300 }, (_, index) => String(900_000 + index));
    const clients = ids.slice(0, 150).map((id) => readUntilServed(world, petql, id));
    for (const id of ids.slice(150)) {
      await world.pass(20);
      clients.push(readUntilServed(world, petql, id));
    }
    const outcomes = await world.until(Promise.all(clients));

    const first = outcomes.flatMap(({ toldMs }) => toldMs.slice(0, 1));
    expect(first.length).toBeGreaterThan(230);
    expect(mostInAMinute(first)).toBeLessThanOrEqual(75);
    expect(Math.max(...outcomes.map(({ toldMs }) => toldMs.length))).toBeLessThanOrEqual(2);
    expect(Math.max(...outcomes.map(({ servedMs }) => servedMs)) - startMs).toBeLessThanOrEqual(6 * MINUTE_MS);
    expect(brokenPromises(world.history())).toEqual([]);
  },
);

test('clients of a used-up day return one minute after the other, too', async () => {
  const key = { perMinute: 20, perDay: 40, windows: 'fixed', tells: 'day' } as const;
  await using world = await createWorld({ seed: 52, startsAt: '2026-11-21T23:50:00Z', keys: { key } });
  const petql = await world.start({ plan: '20/40' });
  await world.until(petql.read(3));
  await world.until(petql.create(20 - world.petApi.log.length));
  await world.pass(2 * MINUTE_MS);
  await world.until(petql.create(20));
  const waits = await world.until(
    Promise.all(
      Array.from({ length: 60 }, (_, index) => petql.ask(`{ pet(id: ${900_000 + index}) { id } }`, { waitMs: 0 })),
    ),
  );
  const told = waits.map(({ errors }) => errors?.[0]?.extensions.retryAfterMs ?? 0);
  expect(mostInAMinute(told)).toBeLessThanOrEqual(25);
  expect(waits[0]?.errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED', window: 'DAY' });
});
