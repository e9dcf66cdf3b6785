import { times, tooMany } from '../../support/pet-api/fault.ts';
import { between, createRandom } from '../../support/random.ts';
import { rowOf } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';
import { run } from './laboratory.ts';
import type { Run, Scene } from './laboratory.ts';
import { MIXES, SIX_MIXES } from './mixes.ts';
import type { MixName } from './mixes.ts';
import { MINUTE_MS, SECOND_MS } from './trigger.ts';
import { QUIET } from './triggers.ts';

const RETRY_AFTER_S = 5;
/** petql waits a second longer: a Retry-After is in whole seconds. */
const PAUSE_MS = (RETRY_AFTER_S + 1) * SECOND_MS;
/** Longer than a call takes there and back. */
const ROUND_TRIP_MS = 200;
const SLOW_ROUND_TRIP_MS = 4_200;
const MOMENTS = 5;
const MINUTES = 2.5;

/** A 429 at any moment costs the honest clients its own pause, and at most what they ask for in a round trip after it. */
export async function judgePauses(seed: number): Promise<Row> {
  const random = createRandom(seed);
  const problems: string[] = [];
  for (const mix of SIX_MIXES) {
    const quiet = await run(MIXES[mix], QUIET, { minutes: MINUTES });
    for (let moment = 0; moment < MOMENTS; moment += 1) {
      const atMs = between(random, 20 * SECOND_MS, MINUTE_MS);
      const lost = await lostTo429(mix, atMs, quiet);
      if (lost > 0) problems.push(`${mix}: a 429 at ${atMs / 1_000} s costs ${lost} reads and creates after its pause`);
    }
  }
  const looked = SIX_MIXES.length * MOMENTS;
  const promise = 'a 429 at any moment costs its own pause, and at most a round trip’s reads after it';
  return rowOf({ promise, looked, problems, measured: `${problems.length} of ${looked} cost more` });
}

/** Returns how many operations got less than in a quiet run, of those that came later than a round trip after the pause. */
async function lostTo429(mix: MixName, atMs: number, quiet: Run): Promise<number> {
  const begin = (scene: Scene) => scene.fail([atMs, Infinity], times(1, tooMany(RETRY_AFTER_S)));
  const met = await run(MIXES[mix], { minutes: MINUTES, begin });
  const refused = met.log.find(({ status }) => status === 429);
  const roundTripMs = mix === 'slow-lists' ? SLOW_ROUND_TRIP_MS : ROUND_TRIP_MS;
  const overMs = (refused?.answeredAtMs ?? met.startMs) - met.startMs + PAUSE_MS + roundTripMs;

  const lateIn = ({ reads }: Run) => reads.filter((read) => read.atMs > overMs && read.result !== 'fresh').length;
  return Math.max(0, lateIn(met) - lateIn(quiet)) + Math.max(0, quiet.creates - met.creates);
}
