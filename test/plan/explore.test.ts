import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { exploreOne, replayFile } from '../verify/explore.ts';
import { createKeyModel } from '../verify/explore/key-model.ts';
import { createLineModel } from '../verify/explore/line-model.ts';
import { createRecordsModel } from '../verify/explore/records-model.ts';
import { createReplicasModel } from '../verify/explore/replicas-model.ts';
import { SCENARIOS, runsOf } from '../verify/explore/scenarios.ts';
import type { Scenario } from '../verify/explore/scenarios.ts';
import type { Model } from '../verify/explore/search.ts';

test.each(SCENARIOS)('no order of events breaks a rule: $name, $about', async ({ maxDepth, search }) => {
  const { isComplete, violation } = await search({ maxDepth: maxDepth.short, maxStates: 100_000 });
  expect(violation).toBeUndefined();
  expect(isComplete).toBe(true);
});

/** A model with a rule that some way breaks. */
function planted<State>(name: string, model: Model<State>, isBroken: (state: State) => boolean): Scenario {
  const broken: Model<State> = {
    ...model,
    async apply(state, action) {
      const problems = await model.apply(state, action);
      return isBroken(state) ? [...problems, 'a planted rule is broken'] : problems;
    },
  };
  return { name, about: 'a planted rule', maxDepth: { short: 4, long: 8 }, ...runsOf(() => broken) };
}

const startMs = Date.UTC(2026, 10, 21, 9, 41, 7);
const upstream = { perMinute: 2, perDay: 4, windows: 'sliding', tells: 'changing', maxCalls: 2, startMs } as const;
const max = { incidents: 0, responses: 0 };
const PLANTED = [
  planted('key', createKeyModel({ ...upstream, faults: { lost: 1 } }), ({ calls }) =>
    calls.some(({ phase }) => phase === 'stray'),
  ),
  planted(
    'replicas',
    createReplicasModel({ ...upstream, replicas: 2, faults: { cut: 1 }, max }),
    ({ replicas, calls }) => replicas[1]?.isCut === true && calls.length > 0,
  ),
  planted(
    'line',
    createLineModel({ perMinute: 3, perDay: 8, startMs, kinds: ['write', 'read'], arrivals: 3, limited: 1 }),
    ({ account }) => account.pause.incidents > 0,
  ),
  planted(
    'records',
    createRecordsModel({ submits: 2, startMs, faults: { mute: 1 } }),
    ({ pets, faults }) => pets === 1 && faults.mute === 0,
  ),
];

test.each(PLANTED)('a violation of $name is found by the shortest way, written, and replayed', async (scenario) => {
  const folder = await mkdtemp(join(tmpdir(), 'traces-'));
  try {
    const found: string[] = [];
    const file = join(folder, `${scenario.name}.json`);
    const [row] = await exploreOne(scenario, (text) => found.push(text), folder);
    expect(row?.problems).toEqual([`a planted rule is broken, see --replay ${file}`]);

    const replayed: string[] = [];
    const problems = await replayFile(file, (text) => replayed.push(text), [scenario]);
    expect(problems).toEqual(['a planted rule is broken']);
    expect(found.at(-1)?.trim().split(/\n */)).toEqual(replayed);
    expect(replayed.length).toBeGreaterThan(1);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a trace of an action that cannot happen says so', async () => {
  const [scenario] = PLANTED;
  expect(await scenario?.replay(['respond 0'], () => {})).toEqual(['"respond 0" cannot happen here']);
});
