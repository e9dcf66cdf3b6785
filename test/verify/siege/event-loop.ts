import { setTimeout } from 'node:timers/promises';
import { post } from '../../support/client.ts';
import { figureOf, metricsOf } from '../../support/fleet.ts';
import { UNLIMITED } from '../../support/pet-api/strict-plan.ts';
import { rowOf } from '../../support/tally.ts';
import { COSTLY_DOCUMENTS } from '../costly-documents.ts';
import { deploy } from '../deployment.ts';
import type { Check } from '../suite.ts';

const MAX_WARM_MS = 50;
const MAX_COLD_MS = 100;
const GOAL = `no document holds the event loop for over ${MAX_WARM_MS} ms, ${MAX_COLD_MS} ms where it is the first`;

/** Other work on the machine makes a document look slow: the least of so many first ones counts, and the median of later ones. */
const PROCESSES = 3;
const TIMES = 9;
/** Of the monitor of Node.js that the metrics show: it adds what it waits between two looks. */
const RESOLUTION_MS = 10;
const PAUSE_MS = 50;
const IDS = Array.from({ length: 100 }, (_, id) => String(id));

/** Sends one document at a time, so that nothing else holds the event loop. */
export const eventLoop: Check = {
  name: 'event-loop',
  goal: GOAL,
  async run({ print }) {
    const problems: string[] = [];
    const [cold, warm] = [[] as number[], [] as number[]];
    for (const [index, { maxSize, of }] of COSTLY_DOCUMENTS.entries()) {
      const document = of(maxSize);
      const [coldMs, warmMs] = await measure(document);
      cold.push(coldMs);
      warm.push(warmMs);
      print(
        `       ${coldMs.toFixed(0)} ms, later ${warmMs.toFixed(0)} ms: ${document.slice(0, 60).replaceAll('\n', '')}`,
      );
      if (coldMs > MAX_COLD_MS) problems.push(`document ${index} held it for ${coldMs.toFixed(0)} ms at first`);
      if (warmMs > MAX_WARM_MS) problems.push(`document ${index} held it for ${warmMs.toFixed(0)} ms`);
    }
    const measured = `${Math.max(...cold).toFixed(0)} ms at first, ${Math.max(...warm).toFixed(0)} ms later`;
    return [rowOf({ promise: GOAL, looked: cold.length, problems, measured, figures: { cold, warm } })];
  },
};

/** Returns how long a document holds the event loop of a process that just started, and later. */
async function measure(document: string): Promise<readonly [coldMs: number, warmMs: number]> {
  const runs: number[][] = [];
  for (let process = 0; process < PROCESSES; process += 1) runs.push(await delaysOf(document));
  const later = runs.flatMap((delays) => delays.slice(1)).toSorted((a, b) => a - b);
  return [Math.min(...runs.map(([first = Infinity]) => first)), later[Math.floor(later.length / 2)] ?? Infinity];
}

async function delaysOf(document: string): Promise<number[]> {
  await using resources = new AsyncDisposableStack();
  const args = ['--plan', '100000000/900000000', '--log-level', 'silent'];
  const { fleet } = await deploy(resources, { planOf: () => UNLIMITED, replicas: 1, args });
  const { process } = fleet.replica(0);
  const delays: number[] = [];
  for (let time = 0; time < TIMES; time += 1) {
    // Each look at the metrics resets those of the event loop.
    await metricsOf(process);
    await setTimeout(PAUSE_MS);
    // Another comment each time, so that nothing made of the document is kept.
    await post(process.address, `${document} # ${time}`, { variables: { ids: IDS } });
    const delayMs = figureOf(await metricsOf(process), 'nodejs_eventloop_lag_max_seconds') * 1_000 - RESOLUTION_MS;
    delays.push(Math.max(0, delayMs));
  }
  return delays;
}
