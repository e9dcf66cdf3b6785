import { ATTACKS } from './siege/attacks.ts';
import { siege as besiege } from './siege/besiege.ts';
import type { SiegeOptions } from './siege/besiege.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import type { Check, Suite } from './suite.ts';

type AttackName = keyof typeof ATTACKS;

const NAMES = Object.keys(ATTACKS) as AttackName[];
/** Each attack keeps a processor busy with few connections. */
const CONNECTIONS = 20;

const MAX_DELAY_P99_MS = 50;
const MAX_RESIDENT_MB = 700;
/** A client that asks more seldom has shown nothing. */
const MAX_PAUSE_MS = 500;
const GOAL = `a good client is answered, event loop less than ${MAX_DELAY_P99_MS} ms late (p99)`;

export const siege: Suite = {
  about: 'costly documents, bodies past the limit, a key for each request',
  minutes: 0.3,
  checks: [...NAMES.map((name) => checkOf(name, { [name]: CONNECTIONS })), checkOf('all at once', allAtOnce(4))],
};

function checkOf(name: string, attacks: SiegeOptions['attacks']): Check {
  return {
    name,
    goal: GOAL,
    async run({ minutes, seed }) {
      const durationMs = minutes * 60_000;
      const [row, fared] = await attack({ attacks, durationMs, seed });
      const problems = [...row.problems];
      if (fared.asked < durationMs / MAX_PAUSE_MS) problems.push(`the good client asked only ${fared.asked} times`);
      if (fared.delayP99Ms >= MAX_DELAY_P99_MS) problems.push(`the event loop was ${fared.delayP99Ms} ms late (p99)`);
      if (fared.residentMegabytes > MAX_RESIDENT_MB) problems.push(`petql held ${fared.residentMegabytes} MB`);
      return [rowOf({ ...row, problems, broken: problems.length })];
    },
  };
}

export function allAtOnce(connections: number): SiegeOptions['attacks'] {
  return Object.fromEntries(NAMES.map((name) => [name, connections]));
}

/** Breaks only where a good client got no answer: this holds on a busy machine, too. */
export async function attack(options: SiegeOptions): Promise<[Row, Awaited<ReturnType<typeof besiege>>]> {
  const fared = await besiege(options);
  const { asked, answered, delayP99Ms, delayMaxMs, slowestMs, heapMegabytes, residentMegabytes } = fared;
  const problems = answered < asked ? [`the good client got ${answered} answers of ${asked}`] : [];
  const measured =
    `delay p99 ${delayP99Ms.toFixed(1)} ms, max ${delayMaxMs.toFixed(0)} ms; slowest answer ${slowestMs.toFixed(0)} ms; ` +
    `heap ${heapMegabytes.toFixed(0)} of ${residentMegabytes.toFixed(0)} MB`;
  return [rowOf({ promise: GOAL, looked: asked, problems, measured, figures: fared }), fared];
}
