import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import { FREE } from '../../src/program/sandbox/demo-keys.ts';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import { STORIES, STORY_NAMES } from '../../src/program/sandbox/stories.ts';
import type { StoryName } from '../../src/program/sandbox/stories.ts';
import { BAD_DAYS } from '../../src/graphiql/bad-days.ts';
import { startVirtualTime } from '../../src/program/simulate/virtual-time.ts';
import type { VirtualTime } from '../../src/program/simulate/virtual-time.ts';
import { story } from '../support/pet-api/fault.ts';
import { PET_API_URL, createTestPetApi } from '../support/start-gateway.ts';

test.each([
  ['demo-revoked', 11],
  ['demo-used-up', 4],
])('the story of %s begins again with a hyphen and anything behind it', async (key, over) => {
  await using sandbox = createSandbox();
  const statusOf = async (apiKey: string) =>
    (await sandbox.fetch('http://pets.test/v1/pets', { headers: { authorization: `Bearer ${apiKey}` } })).status;
  for (let call = 1; call < over; call += 1) expect(await statusOf(key)).toBe(200);
  expect(await statusOf(key)).toBeGreaterThan(400);
  for (let call = 1; call < over; call += 1) expect(await statusOf(`${key}-2`)).toBe(200);
  expect(await statusOf(`${key}-2`)).toBeGreaterThan(400);
  expect([await statusOf('made-up-2'), await statusOf('demo-2')]).toEqual([401, 401]);
});

const BETWEEN_RUNS_MS = 2_000;
const START_MS = Date.parse('2026-11-21T12:00:01Z');

/** A row of src/program/sandbox/README.md. */
interface Row {
  readonly key: string;
  readonly about: string;
  readonly tab: string;
  readonly runs: number;
  /** Between the last run and the one before. */
  readonly lastWaitMs: number;
  readonly sees: string;
}

const page = await readFile(new URL('../../src/program/sandbox/README.md', import.meta.url), 'utf8');
const rows = [...page.matchAll(/^\| (`demo-.+) \|$/gm)]
  .map(([, row = '']) => row.split(' | '))
  .filter(({ length }) => length === 5)
  .map(([key = '', about = '', tab = '', runs = '', sees = '']): Row => {
    const seconds = /(\d+) s apart/.exec(runs)?.[1];
    const lastWaitMs = seconds === undefined ? BETWEEN_RUNS_MS : Number(seconds) * 1_000;
    return { key: key.replaceAll('`', ''), about, tab, runs: Number.parseInt(runs, 10), lastWaitMs, sees };
  });

let time: VirtualTime;
let gateway: Gateway | undefined;

beforeEach(async () => {
  time = await startVirtualTime(START_MS);
});
afterEach(async () => {
  if (gateway) await until(gateway.close());
  gateway = undefined;
  time[Symbol.dispose]();
});

async function until<T>(promise: Promise<T>): Promise<T> {
  let isOver = false;
  const end = () => void (isOver = true);
  promise.then(end, end);
  await time.run(() => isOver);
  return promise;
}

const pass = (ms: number) => until(new Promise<void>((resolve) => void setTimeout(resolve, ms)));

function start(options: GatewayOptions): Gateway {
  return (gateway = createGateway(options));
}

/** Runs the tab of a bad day as GraphiQL does, and returns what its user sees. */
async function run({ fetch }: Gateway, { tab }: Row, operationName = tab) {
  const { apiKey, query, variables = '{}', headers } = dayOf(tab);
  const startedMs = Date.now();
  const request = new Request('http://localhost/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}`, ...headers },
    body: JSON.stringify({ query, operationName, variables: JSON.parse(variables) }),
  });
  const response = await until(fetch(request).then((answer): Promise<any> => answer.json()));
  const { data, errors = [], extensions } = response;
  const states = [...errors.map((error: any) => error.extensions.code), extensions?.petql.staleReason];
  return { data, errors, states: states.filter(Boolean) as string[], tookMs: Date.now() - startedMs };
}

function dayOf(tab: string) {
  const day = BAD_DAYS.find(({ query }) => new RegExp(`^(?:query|mutation) ${tab}\\b`, 'm').test(query));
  if (!day) throw new Error(`GraphiQL has no tab ${tab}`);
  return day;
}

/** Runs a tab until its user sees what the page says, and checks that nothing is wrong before. */
async function meet(petql: Gateway, row: Row) {
  for (let turn = 1; turn < row.runs; turn += 1) {
    const { states, tookMs } = await run(petql, row);
    expect([turn, states]).toEqual([turn, []]);
    await pass(turn === row.runs - 1 ? row.lastWaitMs - tookMs : BETWEEN_RUNS_MS - tookMs);
  }
  return run(petql, row);
}

/** The double of the tests with the story of a demo key, and what others use of its plan. */
function doubleOf(key: string): GatewayOptions {
  const name = key.replace('demo-', '') as StoryName;
  const petApi = createTestPetApi({ keys: { [key]: FREE }, now: () => Date.now() });
  const { perDay = FREE.perDay, perMinute = FREE.perMinute } = STORIES[name].leaves ?? {};
  for (let call = FREE.perDay - perDay; call > 0; call -= 1) petApi.countOthers(key, 1, START_MS - 2_000 * call);
  petApi.countOthers(key, FREE.perMinute - perMinute);
  petApi.fault = story(name);
  return { petApiUrl: PET_API_URL, dispatcher: petApi.connect() };
}

test('each story has a key, a line of the page and a tab', () => {
  expect(rows.map(({ key }) => key.replace('demo-', ''))).toEqual(expect.arrayContaining(STORY_NAMES));
  expect(rows.map(({ tab, key }) => [tab, dayOf(tab).apiKey === key])).toEqual(rows.map(({ tab }) => [tab, true]));
  expect(BAD_DAYS).toHaveLength(rows.length);
  for (const { key, about } of rows) {
    expect(['the same', STORIES[key.replace('demo-', '') as StoryName].about]).toContain(about);
  }
});

describe.each([
  ['the sandbox', (): GatewayOptions => createSandbox().gatewayOptions],
  ["the tests' own double", doubleOf],
])('by %s', (_name, open) => {
  test.each(rows)('$key: run $tab $runs times, and you see $sees', async (row) => {
    const { data, states, tookMs } = await meet(start(open(row.key)), row);
    const state = /`([A-Z_]+)`/.exec(row.sees)?.[1];
    expect(new Set(states)).toEqual(new Set(state === undefined ? [] : [state]));
    const hasData = Object.values(data ?? {}).some((field) => field !== null);
    expect(hasData).toBe(/^(?:stale )?data/.test(row.sees) || row.tab === 'Unauthenticated');
    const waitSeconds = /(?:data after|a wait of) (\d+) s/.exec(row.sees)?.[1] ?? 0;
    // A wait ends up to a second after it was told, since dates have whole seconds.
    expect(Math.floor(tookMs / 1_000) - Number(waitSeconds)).toBeOneOf([0, 1]);
  });
});

describe('the bad day is over:', () => {
  const rowOf = (tab: string) => rows.find((row) => row.tab === tab) as Row;

  test.each([
    ['QuotaExhausted', 60_000],
    ['Paused', 21_000],
    ['Down', 60_000],
    ['Forbidden', 61_000],
  ])('%s after %i ms, and not before', async (tab, lastsMs) => {
    const petql = start(createSandbox().gatewayOptions);
    const { states } = await meet(petql, rowOf(tab));
    await pass(lastsMs / 2);
    expect((await run(petql, rowOf(tab))).states).toEqual(states);
    await pass(lastsMs / 2);
    expect((await run(petql, rowOf(tab))).states).toEqual([]);
  });

  test('UpstreamFailed once a call succeeds, which the next run shows', async () => {
    const petql = start(createSandbox().gatewayOptions);
    await meet(petql, rowOf('UpstreamFailed'));
    await pass(5_000);
    await run(petql, rowOf('UpstreamFailed'));
    expect((await run(petql, rowOf('UpstreamFailed'))).states).toEqual([]);
  });

  test('RateLimited at midnight in UTC, as the error says', async () => {
    const petql = start(createSandbox().gatewayOptions);
    const { errors } = await meet(petql, rowOf('RateLimited'));
    const { window, retryAt, retryAfterMs } = errors[0].extensions;
    expect([window, retryAt]).toEqual(['DAY', expect.stringMatching(/^2026-11-22T00:00:0[0-2]/)]);
    await pass(retryAfterMs);
    expect((await run(petql, rowOf('RateLimited'))).states).toEqual([]);
  });

  test('Unauthenticated never, and nothing of before is shown', async () => {
    const petql = start(createSandbox().gatewayOptions);
    await meet(petql, rowOf('Unauthenticated'));
    await pass(3_600_000);
    const { states, data } = await run(petql, rowOf('Unauthenticated'));
    expect([new Set(states), Object.values(data ?? {}).filter(Boolean)]).toEqual([new Set(['UNAUTHENTICATED']), []]);
  });

  test('OutcomeUnknown stays for its idempotency key, and one pet is there', async () => {
    const { gatewayOptions, calls } = createSandbox();
    const petql = start(gatewayOptions);
    await meet(petql, rowOf('OutcomeUnknown'));
    expect((await run(petql, rowOf('OutcomeUnknown'))).states).toEqual(['OUTCOME_UNKNOWN']);
    const { data } = await run(petql, rowOf('OutcomeUnknown'), 'CreatedPets');
    expect(data.pets.filter(({ name }: { name: string }) => name === 'Momo')).toHaveLength(1);
    expect(calls.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });
});
