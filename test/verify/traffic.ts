import { createGateway } from '../../src/index.ts';
import { PLANS } from '../../src/common/plan.ts';
import { PET_API_URL } from '../support/start-gateway.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { fewestCalls } from './oracle/fewest-calls.ts';
import type { Suite } from './suite.ts';
import { DEADLINE_MS, drive } from './traffic/drive.ts';
import type { Outcome } from './traffic/drive.ts';
import { createLimiter, createRival } from './traffic/rivals.ts';
import { COLUMNS, createTraffic, oracleTraceOf } from './traffic/trace.ts';
import type { TrafficRow } from './traffic/trace.ts';

/** README shows this one. */
const SEED = 1;
const HOUR_MINUTES = 60;
/** Somebody who knows the future serves data of at most so many minutes; petql serves none over ten. */
const ORACLE_MINUTES = [1, 10] as const;

/** The same hour of an adoption page on one Free key, through petql and through gateways that people write by hand. */
export const traffic: Suite = {
  about: 'an hour of visitors on a Free key: petql beside gateways that people write by hand',
  seed: SEED,
  checks: [
    {
      name: 'hour',
      goal: 'petql answers all, within the plan',
      run: async ({ seed, print }) => {
        const rows = createTraffic({ seed, minutes: HOUR_MINUTES });
        const results = await compareTraffic(rows);
        print(tableOf(results));
        return results.map((result, index) => rowFor(result, index === 0 ? rows : undefined));
      },
    },
  ],
};

export interface TrafficResult {
  readonly name: string;
  readonly outcome: Outcome;
  /** Of petql alone: the fewest calls that could answer the same, for each of `ORACLE_MINUTES`. */
  readonly fewest?: readonly number[];
}

/** petql first. All see the same requests, the same pets and an upstream that counts alike. */
export async function compareTraffic(rows: readonly TrafficRow[]): Promise<TrafficResult[]> {
  return [
    await driveThroughPetql(rows),
    { name: 'Yoga, DataLoader', outcome: await drive(rows, (petApi) => createRival(petApi.connect())) },
    {
      name: 'Yoga, DataLoader, Bottleneck',
      outcome: await drive(rows, (petApi) => createRival(petApi.connect(), createLimiter(PLANS.free, DEADLINE_MS))),
    },
  ];
}

async function driveThroughPetql(rows: readonly TrafficRow[]): Promise<TrafficResult> {
  const petql = await drive(rows, (petApi) => {
    const gateway = createGateway({ petApiUrl: PET_API_URL, dispatcher: petApi.connect() });
    return { fetch: (request) => gateway.fetch(request), close: () => gateway.close() };
  });
  const trace = oracleTraceOf(rows);
  const fewest: number[] = [];
  for (const minutes of ORACLE_MINUTES) {
    const reads = await fewestCalls(trace, petql.createdAtMs, minutes * 60_000);
    fewest.push(reads + trace.createsAtMs.length);
  }
  return { name: 'petql', outcome: petql, fewest };
}

/** As in README. */
export function tableOf(results: readonly TrafficResult[]): string {
  const [{ outcome, fewest } = {} as TrafficResult] = results;
  return [
    `| Gateway | Requests answered (${figure(outcome?.operations ?? 0)} sent) | Upstream calls | 429s | p95 wait | Median age |`,
    '|---|---|---|---|---|---|',
    ...results.map(({ name, outcome: { answered, calls, refused, p95WaitMs, medianAgeMs } }) => {
      const seconds = [`${(p95WaitMs / 1_000).toFixed(1)} s`, `${Math.round(medianAgeMs / 1_000)} s`];
      return lineOf([name, figure(answered), figure(calls), figure(refused), ...seconds]);
    }),
    ...ORACLE_MINUTES.map((minutes, index) => {
      const name = `lower bound, with data of at most ${minutes} min`;
      return lineOf([name, figure(outcome.operations), figure(fewest?.[index] ?? 0), '', '', '']);
    }),
  ].join('\n');
}

function rowFor({ name, outcome, fewest }: TrafficResult, rows: readonly TrafficRow[] | undefined): Row {
  const { createdAtMs: _created, ...figures } = outcome;
  const { operations, answered, calls, refused, early, p95WaitMs, medianAgeMs, p95AgeMs } = outcome;
  const isPetql = rows !== undefined;
  const problems = [
    ...(isPetql && answered < operations ? [`${operations - answered} operations failed`] : []),
    ...(isPetql && refused > 0 ? [`${refused} calls were over the plan`] : []),
  ];
  return rowOf({
    promise: isPetql ? 'every operation is answered, no call is over the plan' : name,
    looked: operations,
    problems,
    measured: [
      `${answered} answered, ${calls} calls, ${refused} × 429, ${early} before Retry-After was over`,
      `p95 wait ${p95WaitMs} ms, age ${Math.round(medianAgeMs / 1_000)} s in the median, ${Math.round(p95AgeMs / 1_000)} s at p95${isPetql ? `; ${fewest?.join(' and ')} calls are the fewest` : ''}`,
    ].join('; '),
    figures: { ...figures, ...(rows && { fewest, columns: COLUMNS, trace: rows.map(valuesOf) }) },
  });
}

function valuesOf({ ms, visitor, kind, of, limit }: TrafficRow) {
  return [ms, visitor, kind, of, limit ?? ''];
}

function lineOf(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function figure(value: number): string {
  return value.toLocaleString('en');
}
