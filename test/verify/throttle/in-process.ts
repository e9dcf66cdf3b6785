import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createGateway } from '../../../src/index.ts';
import { PLANS } from '../../../src/common/plan.ts';
import { brokenPromises } from '../../support/check.ts';
import { tooMany } from '../../support/pet-api/fault.ts';
import { createPetApi } from '../../support/pet-api/pet-api.ts';
import { HEADER_FORMS } from '../../support/pet-api/headers.ts';
import type { HeaderRecord } from '../../support/pet-api/fault.ts';
import { percentile } from '../../../src/program/simulate/percentile.ts';
import { between } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import { startRedis } from '../../support/redis-server.ts';
import { MINUTE_MS, createWorld } from '../../support/world.ts';
import type { Check } from '../suite.ts';
import { scenario } from './scenario.ts';
import type { Findings, Scene } from './scenario.ts';

const KEYS = 10_000;
const CALLS_PER_SECOND = 100;
const LASTS_MS = 30_000;
/** By then the code is compiled, as it is in a process that serves. */
const WARM_AFTER_MS = 3_000;
/** What the double takes for a call. */
const CALL_MS = 2;
const MAX_MS = { memory: 15, redis: 20 } as const;
const CREATE = 'mutation { createPet(input: { name: "Momo", categoryId: "1" }) { pet { id } } }';

/** What petql adds to a call of a key that has calls left, with ten thousand keys at work. */
export const manyKeys: readonly Check[] = (['memory', 'redis'] as const).map((place) =>
  scenario({ name: `many-keys-${place}`, goal: `p99 added at most ${MAX_MS[place]} ms` }, (scene) =>
    callAll(scene, place),
  ),
);

async function callAll({ random, resources }: Scene, place: 'memory' | 'redis'): Promise<Findings> {
  const plan = { ...PLANS.free, windows: 'fixed', tells: 'minute' } as const;
  const petApi = createPetApi({ planOf: () => plan, latencyMs: [CALL_MS / 2, CALL_MS / 2] });
  const redis = place === 'redis' ? await startRedis() : undefined;
  resources.defer(async () => redis?.close());
  const gateway = createGateway({
    petApiUrl: 'http://pet-api.test/v1',
    dispatcher: petApi.connect(),
    plan: 'free',
    ...(redis && { redisUrl: redis.url }),
  });
  resources.defer(() => gateway.close());
  await gateway.ready();
  const addedMs: number[] = [];
  let failed = 0;
  const beganMs = performance.now();
  const call = async () => {
    const startedMs = performance.now();
    const { errors } = await gateway.execute({ document: CREATE, apiKey: `key-${between(random, 1, KEYS)}` });
    if (errors) failed += 1;
    if (startedMs - beganMs > WARM_AFTER_MS) addedMs.push(performance.now() - startedMs - CALL_MS);
  };
  const calls: Promise<void>[] = [];
  // At a steady rate, whatever has come back.
  for (let elapsedMs = 0; elapsedMs < LASTS_MS; elapsedMs = performance.now() - beganMs) {
    const due = Math.floor((elapsedMs / 1_000) * CALLS_PER_SECOND);
    while (calls.length < due) calls.push(call());
    await setTimeout(1);
  }
  await Promise.all(calls);

  const p99Ms = percentile(addedMs, 0.99);
  const refusals = petApi.log.filter(({ status }) => status === 429).length;
  const arrived = petApi.log.length;
  const problems = [
    p99Ms > MAX_MS[place] && `p99 ${p99Ms.toFixed(1)} ms`,
    refusals + failed > 0 && `${refusals} × 429, ${failed} failed`,
    arrived !== calls.length && `${calls.length} calls, ${arrived} arrived`,
  ].filter((problem) => problem !== false);
  const measured = `p50 ${percentile(addedMs, 0.5).toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`;
  return { calls: arrived, measured, problems };
}

const PAUSE_MS = 12_000;
const LEAVE_PER_SECOND = 1_000;
const LEAVE_AFTER_MS = 250;
const STAYING = 20;
const MAX_ADDED_MS = 500;
const MAX_BYTES = 1_500;

/** The key is paused after a 429, and clients give up by the thousand while others wait for the end of the pause. */
export const leavers = scenario(
  {
    name: 'leavers',
    goal: `${LEAVE_PER_SECOND} clients a second leave: the first call ${MAX_ADDED_MS} ms late at most, ${MAX_BYTES} bytes for each`,
  },
  async ({ resources }) => {
    const plan = { ...PLANS.business, windows: 'fixed', tells: 'minute' } as const;
    const petApi = createPetApi({ planOf: () => plan });
    const gateway = createGateway({
      petApiUrl: 'http://pet-api.test/v1',
      dispatcher: petApi.connect(),
      plan: 'business',
    });
    resources.defer(() => gateway.close());
    await gateway.ready();
    const create = (signal?: AbortSignal) =>
      gateway.execute({ document: CREATE, apiKey: 'key', waitMs: 25_000, ...(signal && { signal }) });
    const leave = () => create(AbortSignal.timeout(LEAVE_AFTER_MS)).catch(() => {});
    petApi.fault = tooMany(PAUSE_MS / 1_000 - 1);
    await leave();
    petApi.fault = undefined;
    const pausedAtMs = petApi.log[0]?.atMs ?? 0;
    const leaveFor = async (untilMs: number) => {
      const fromMs = petApi.now();
      const gone: Promise<unknown>[] = [];
      while (petApi.now() < untilMs) {
        while (gone.length < ((petApi.now() - fromMs) / 1_000) * LEAVE_PER_SECOND) gone.push(leave());
        await setTimeout(2);
      }
      await Promise.all(gone);
      return gone.length;
    };
    // The first ones fill what is kept for later.
    await leaveFor(pausedAtMs + PAUSE_MS / 3);
    const beforeBytes = heapBytes();
    const left = await leaveFor(pausedAtMs + PAUSE_MS - 3 * LEAVE_AFTER_MS);
    const bytes = Math.round((heapBytes() - beforeBytes) / left);
    const answers = await Promise.all(Array.from({ length: STAYING }, () => create()));

    const lateMs = (petApi.log[1]?.atMs ?? Infinity) - pausedAtMs - PAUSE_MS;
    const failed = answers.filter(({ errors }) => errors).length;
    const problems = [
      lateMs > MAX_ADDED_MS && `the first call came ${lateMs} ms late`,
      bytes > MAX_BYTES && `${bytes} bytes for each client that left`,
      failed > 0 && `${failed} of those who stayed failed`,
      petApi.log.length !== 1 + STAYING && `${petApi.log.length} calls, ${1 + STAYING} expected`,
    ].filter((problem) => problem !== false);
    return { calls: petApi.log.length, measured: `${lateMs} ms late, ${bytes} bytes each of ${left}`, problems };
  },
);

/** What is left after a garbage collection. */
function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

const RESPONSES = 300_000;
const MALFORMED_KEYS = 60;

/** Clients that want all they can get, of an upstream that counts well and whose headers are malformed. */
export const malformed = scenario(
  {
    name: 'malformed',
    goal: `${RESPONSES.toLocaleString('en')} malformed headers: no exception, one 429 a key where windows slide, else none`,
  },
  async ({ random }) => {
    const findings = { calls: 0, measured: '', problems: [] as string[] };
    for (let key = 0; key < MALFORMED_KEYS; key += 1) {
      const plan = { perMinute: between(random, 5, 400), perDay: 1_000_000 };
      const windows = random() < 0.5 ? 'fixed' : 'sliding';
      await using world = await createWorld({
        seed: between(random, 1, 1_000_000),
        startsAt: '2026-11-21T11:59:13Z',
        keys: { key: { ...plan, windows, tells: 'minute' } },
      });
      const { log } = world.petApi;
      world.petApi.fault = () => ({ headers: (headers) => disfigured(random, headers) });
      const petql = await world.start({ plan: `${plan.perMinute}/${plan.perDay}` });
      // They wait rather than come back: a refused operation takes as long as a call.
      const load = { clients: 5, batch: Math.ceil(plan.perMinute / 10), waitMs: 5 * MINUTE_MS };
      while (log.length < RESPONSES / MALFORMED_KEYS) await world.saturate([petql], 5 * MINUTE_MS, load);
      findings.calls += log.length;
      // Where no header says that a reset has freed a part only, calls find it out, once a week.
      findings.problems.push(...brokenPromises(world.history(), { incidents: windows === 'sliding' ? 1 : 0 }));
      const errors = petql.logLines.filter(({ level }) => Number(level) >= ERROR_LEVEL);
      findings.problems.push(...errors.map((line) => `the log has ${JSON.stringify(line)}`));
    }
    return findings;
  },
);

/** Of pino. */
const ERROR_LEVEL = 50;

/** Each header is left as it is, left out, or spoilt; what is spoilt is never a lie that a reader could believe. */
function disfigured(random: Random, headers: HeaderRecord): HeaderRecord {
  const spoilt: Record<string, string | string[] | undefined> = { ...headers };
  for (const [name, value] of Object.entries(headers)) {
    const luck = random();
    if (typeof value !== 'string' || luck < 0.25) continue;
    spoilt[name] = luck < 0.4 ? undefined : spoil(random, name, value);
  }
  return spoilt;
}

/** What no header means; some differ by the value in whose place they stand. */
const NONSENSE = ['', ' ', 'null', 'NaN', 'Infinity', '-1', '９９', '99999999999999999999', 'unlimited'];
const variantsOf = (value: string) => [`-${value}`, `${value}.5`, `${value}e9`, `0x${value}`, `"${value}"`];
function spoil(random: Random, name: string, value: string): string | string[] {
  const noise = String.fromCodePoint(between(random, 0x3a, 0x2fff)).repeat(between(random, 1, 40));
  const twice = [`${value}, ${value}0`, [value, `${value}0`], []];
  const choices = [...NONSENSE, ...variantsOf(value), ...twice, noise, ...(HEADER_FORMS[name]?.impossible ?? [])];
  return choices[between(random, 0, choices.length - 1)] ?? '';
}
