import { expect, test } from 'vitest';
import { brokenPromises } from '../support/check.ts';
import { HOUR_MS, createWorld } from '../support/world.ts';
import type { Petql } from '../support/world.ts';

const READ = 'query ($id: ID!) { pet(id: $id) { id } }';
/** The Pro plan and a job of 10,000 reads; a tenth of both in a short run. */
const SCALE = process.env['PETQL_ALL_CASES'] ? 1 : 0.1;
const PLAN = { perMinute: 300 * SCALE, perDay: 10_000 * SCALE };
const JOB_READS = 10_000 * SCALE;
/** People read a pet so often, which needs a call: less in all than the fifth of the day that the job leaves. */
const EVERY_MS = 50_000 / SCALE;
const HOURS = 24;

/** A day of people, some with a job beside them; how many of their operations were served, and of the job's. */
async function dayOf(hasJob: boolean): Promise<{ served: number; asked: number; done: number }> {
  const key = { ...PLAN, windows: 'fixed', tells: 'minute' } as const;
  await using world = await createWorld({ seed: 62, startsAt: '2026-11-21T00:00:02Z', keys: { key } });
  const petql = await world.start({ plan: `${PLAN.perMinute}/${PLAN.perDay}` });
  await world.until(petql.read(3));

  const day = { served: 0, asked: 0, done: 0 };
  const job = hasJob ? runJob(petql, () => (day.done += 1)) : undefined;
  const answers: Promise<void>[] = [];
  for (let ms = 0; ms < HOURS * HOUR_MS; ms += EVERY_MS) {
    day.asked += 1;
    const id = String(800_000 + day.asked);
    const answer = petql.ask(READ, { variables: { id }, waitMs: 5_000 });
    answers.push(answer.then(({ errors }) => void (day.served += errors ? 0 : 1)));
    await world.pass(EVERY_MS);
  }
  await world.until(Promise.all(answers));
  job?.stop();
  expect(brokenPromises(world.history())).toEqual([]);
  return day;
}

/** Reads one pet after the other with ten workers, and comes back when it is told to. */
function runJob(petql: Petql, onDone: () => void) {
  let next = 0;
  const stopping = new AbortController();
  const work = async () => {
    while (next < JOB_READS && !stopping.signal.aborted) {
      const id = String(900_000 + (next += 1));
      for (;;) {
        const { errors } = await petql.ask(READ, { variables: { id }, background: true, waitMs: 60_000 });
        if (!errors || stopping.signal.aborted) break;
        await new Promise((resolve) => void setTimeout(resolve, errors[0]?.extensions.retryAfterMs ?? 1_000));
      }
      if (!stopping.signal.aborted) onDone();
    }
  };
  for (let worker = 0; worker < 10; worker += 1) void work();
  return { stop: () => stopping.abort() };
}

/** Two days are computed: how long that takes says nothing of petql. */
const LIMIT = { timeout: 600_000 * SCALE };

test('a nightly job of 10,000 reads takes nothing from people, and gets the rest of the day', LIMIT, async () => {
  const alone = await dayOf(false);
  const beside = await dayOf(true);
  expect(alone.served).toBe(alone.asked);
  expect(beside.served).toBeGreaterThanOrEqual(0.99 * alone.served);
  // A fifth of the day is kept for people.
  expect(beside.done).toBeGreaterThan(0.95 * (0.8 * PLAN.perDay - beside.asked));
});
