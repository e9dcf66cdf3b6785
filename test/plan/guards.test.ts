import { expect, test } from 'vitest';
import { findStale } from '../verify/changed-copy.ts';
import { shortfallsOf } from '../verify/guards/figures.ts';
import type { Goal } from '../verify/guards/figures.ts';
import { GUARDS } from '../verify/guards/guarded-lines.ts';
import { run } from '../verify/guards/laboratory.ts';
import { MIXES } from '../verify/guards/mixes.ts';
import type { MixName } from '../verify/guards/mixes.ts';
import { OUTAGES, judgeOutage } from '../verify/guards/outages.ts';
import { TRIGGERS } from '../verify/guards/triggers.ts';
import type { TriggerName } from '../verify/guards/triggers.ts';

type Row = readonly [mix: MixName, trigger: TriggerName, minutes: number, goal: Goal];

const ALL: Goal = { fresh: 0.97, creates: 0.97 };

// `npm run verify -- guards` tries all triggers in all mixes, with each guard and without it.
const ROWS: readonly Row[] = [
  // What one visitor, or two keys, ask for closes nothing for others.
  ['page', 'bad-id-in-maintenance', 2, { fresh: 0.97 }],
  ['four-keys', 'creates-in-maintenance', 2, { fresh: 0.97 }],
  ['page', 'bad-creates', 2, ALL],
  ['creates', 'bad-creates', 1, ALL],
  ['pets', 'huge-ids', 2, ALL],
  ['slow-lists', 'huge-ids', 2, ALL],
  ['page', 'bad-create-and-bad-id', 2, ALL],
  ['page', 'missing-pets', 2, ALL],
  ['page', 'failing-creates', 1, ALL],
  ['create-only', 'failing-creates', 1, ALL],
  ['page', 'hanging-pets', 1, { served: 0.97, creates: 0.97, p95Ms: 1_000 }],
  ['page', 'failing-ids', 2, { fresh: 0.93, served: 0.98, creates: 0.97 }],
  // After a 429 nobody's create is the probe for ever. The pause itself costs 6 s.
  ['page', 'failing-creates-after-429', 4, { fresh: 0.94, creates: 0.94 }],
  ['page', 'forbidden-creates-after-429', 3, { fresh: 0.94, creates: 0.94 }],
  // A client that does not wait is one client, whom others wait for no longer than for any.
  ['nameless', 'careless-client', 2, { told: 98 }],
  // Strangers take nobody's call.
  ['page', 'strangers-after-a-failure', 1, ALL],
  ['page', 'strangers-after-missing-gets', 1, ALL],
  ['page', 'bad-ids-of-strangers', 2, ALL],
  // What still works is served.
  ['page', 'maintenance-and-a-list', 2, { fresh: 0.86 }],
  ['page', 'maintenance-and-gets', 2, { fresh: 0.85 }],
  ['page', 'lists-fail', 3, { fresh: 0.57, creates: 0.9 }],
  ['page', 'poisoned-pet', 3, { fresh: 0.55, creates: 0.9 }],
  ['page', 'cached-lists', 2, { served: 0.86 }],
  ['page', 'outage-with-a-create', 6, { served: 0.7 }],
  ['slow-lists', 'firewall', 2, { served: 0.85 }],
  // One bad moment is one.
  ['page', 'two-blips', 33, { fresh: 0.92, creates: 0.9 }],
  ['page', 'two-blips-of-a-list', 35, ALL],
  ['batches', 'one-425', 1, { fresh: 0.9 }],
  // One 401 is a node of the API, or an operation that the key may not do.
  ['page', 'one-401', 1, { fresh: 0.95, creates: 0.9 }],
  ['page', 'one-node-rejects', 3, { fresh: 0.9, creates: 1 / 3 }],
  ['page', 'read-only-key', 2, { fresh: 0.97 }],
  ['page', 'gets-are-401', 2, { fresh: 0.84, creates: 0.97 }],
  ['slow-lists', 'gets-are-401', 2, { fresh: 0.75, creates: 0.97 }],
];

test.each(ROWS)('honest clients of %s keep what they are due at %s, for %d min', async (mix, name, minutes, goal) => {
  expect(shortfallsOf(await run(MIXES[mix], TRIGGERS[name], { minutes }), goal)).toEqual([]);
});

test.each(['page', 'four-keys'] as const)(
  'an API that is down for 3 min gets few calls by %s, and none of made-up keys',
  async (mix) => {
    const [{ minutes, maxCalls }] = OUTAGES;
    expect(await judgeOutage({ minutes, maxCalls, mixes: [mix] })).toMatchObject({ problems: [] });
  },
);

test('each guard can be turned off: its line is in the source exactly once', async () => {
  expect(await findStale(Object.values(GUARDS))).toEqual([]);
});
