import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { SCENARIOS } from './explore/scenarios.ts';
import type { Scenario } from './explore/scenarios.ts';
import type { Check, Suite } from './suite.ts';

/** So many states take some 4 GB and half an hour. */
const MAX_STATES = 4_000_000;
const FOLDER = 'traces';

/** A trace that broke a rule. */
interface Trace {
  readonly scenario: string;
  readonly actions: readonly string[];
}

/** Explores every order of events around the account of one key, the shortest first. */
export const explore: Suite = {
  about: 'explores every order of events around one key, for a small plan',
  checks: SCENARIOS.map((scenario): Check => ({
    name: scenario.name,
    goal: `no order of events breaks a rule: ${scenario.about}`,
    run: ({ print }) => exploreOne(scenario, print),
  })),
};

/** Explores one scenario. The trace of a violation goes into the folder. */
export async function exploreOne(
  scenario: Scenario,
  print: (text: string) => void,
  folder: string = FOLDER,
): Promise<readonly Row[]> {
  const startedMs = performance.now();
  const limits = { maxDepth: scenario.maxDepth.long, maxStates: MAX_STATES };
  const { costs, depth, isClosed, isComplete, states, transitions, violation } = await scenario.search(limits);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  const extent = isClosed ? 'all there are' : isComplete ? 'complete' : 'not complete';
  const bounds = Object.entries(costs).map(([name, { max }]) => `, at most ${max} ${name}`);
  const measured = `${states} states, ${transitions} transitions, ${depth} actions deep, ${extent}, ${seconds} s${bounds.join('')}`;
  for (const [name, { actions, max }] of Object.entries(costs)) print(`       ${max} ${name}: ${actions.join(', ')}`);
  if (!violation) return [rowOf({ promise: scenario.about, looked: states, problems: [], measured })];

  const file = `${folder}/${scenario.name}.json`;
  await mkdir(folder, { recursive: true });
  const trace: Trace = { scenario: scenario.name, actions: violation.actions };
  await writeFile(file, JSON.stringify(trace, undefined, 2));
  print(`       ${violation.actions.join('\n       ')}`);
  const problems = [`${violation.problems.join('; ')}, see --replay ${file}`];
  return [rowOf({ promise: scenario.about, looked: states, problems, measured })];
}

/** Runs a trace again. Returns what is broken. */
export async function replayFile(
  file: string,
  print: (text: string) => void,
  scenarios: readonly Scenario[] = SCENARIOS,
): Promise<readonly string[]> {
  const { actions, scenario } = JSON.parse(await readFile(file, 'utf8')) as Trace;
  const found = scenarios.find(({ name }) => name === scenario);
  if (!found) return [`there is no scenario ${scenario}`];
  return found.replay(actions, print);
}
