import { silentLog } from '../../../src/common/log.ts';
import type { Answer } from '../../support/operation.ts';
import { during } from '../../support/pet-api/fault.ts';
import type { FaultRule } from '../../support/pet-api/fault.ts';
import type { PetApi } from '../../support/pet-api/pet-api.ts';
import { createPetStore } from '../../support/pet-api/pet-store.ts';
import type { StrictPlanOptions } from '../../support/pet-api/strict-plan.ts';
import { createRedis, startReplicas } from '../../support/redis-double.ts';
import { createWorld } from '../../support/world.ts';
import type { OperationOptions, Petql, World } from '../../support/world.ts';
import { count, drawOperations, honestKeys, newTally } from './load.ts';
import type { HonestOperation, Tally } from './load.ts';
import type { Mix } from './mixes.ts';

/** What goes wrong in a run. All times are milliseconds since its start. */
export interface Incident {
  /** How many minutes show it. */
  readonly minutes: number;
  /** When new processes take the place of petql. Default: never. */
  readonly redeployAtMs?: number;
  /** While no honest client wants anything. Default: never. */
  readonly silence?: Span;
  readonly begin: (scene: Scene) => void;
}

/** Where an incident happens. */
export interface Scene {
  readonly petApi: PetApi;
  /** The first key of the honest clients. */
  readonly honestKey: string;
  /** From when to when the pet API answers by this rule. Of several, the one that was given first decides. */
  readonly fail: (span: Span, rule: FaultRule) => void;
  readonly at: (atMs: number, act: () => unknown) => void;
  readonly every: (everyMs: number, span: Span, act: (index: number) => unknown) => void;
  /** Sends an operation that no tally counts. A key is made up unless it is an honest one or among `VALID_KEYS`. */
  readonly ask: (document: string, options: OperationOptions) => Promise<Answer>;
}

export type Span = readonly [fromMs: number, untilMs: number];

/** What the honest clients got, and what it cost. */
export interface Run extends Tally {
  /** Calls that arrived with the keys of honest clients, and with any other. */
  readonly calls: number;
  readonly otherCalls: number;
  /** The calls of all keys, and when the run started. */
  readonly log: PetApi['log'];
  readonly startMs: number;
}

/** Keys beside those of the honest clients, which the pet API accepts. */
export const VALID_KEYS = Array.from({ length: 6 }, (_, index) => `other-${index + 1}`);

/** petql's default: no client waits longer. */
const MAX_WAIT_MS = 10_000;
const STARTS_AT = '2026-11-21T09:41:07Z';
/** With it the adoption page wants 1,203 reads and 122 creates in ten minutes. */
export const SEED = 333;

/** Lets the honest clients of a mix meet an incident, on virtual time: the same arguments give the same run. */
export async function run(
  mix: Mix,
  incident: Incident,
  { minutes = incident.minutes, seed = SEED } = {},
): Promise<Run> {
  await using world = await createMixWorld(mix, seed);
  const { petApi, nowMs: startMs } = world;
  const { redeployAtMs, silence: [silentFromMs, silentUntilMs] = [Infinity, Infinity] } = incident;
  const processes = await startAll(world, mix);
  const { length: serving } = processes;
  if (redeployAtMs !== undefined) processes.push(...(await startAll(world, mix)));
  let turns = 0;
  const ask: Scene['ask'] = async (document, { visitor, ...options }) => {
    const petql = processes[(turns += 1) % serving] as Petql;
    return petql.ask(document, { ...options, ...(visitor !== undefined && !mix.isNameless && { visitor }) });
  };

  const scene = openScene(mix, { petApi, startMs, endMs: startMs + minutes * 60_000, ask });
  incident.begin(scene);
  const redeploy = () => Promise.all(processes.splice(0, serving).map((petql) => petql.stop()));
  if (redeployAtMs !== undefined) scene.at(redeployAtMs, redeploy);

  const operations = drawOperations(mix, { seed, minutes });
  const wanted = operations.filter(({ atMs }) => atMs < silentFromMs || atMs >= silentUntilMs);
  const tally = await world.until(serveAll(wanted, ask, startMs));

  const honest = new Set(honestKeys(mix));
  const calls = petApi.log.filter(({ key }) => honest.has(key)).length;
  return { ...tally, calls, otherCalls: petApi.log.length - calls, log: petApi.log, startMs };
}

/** Sends each operation at its time, and waits for none before the next. */
async function serveAll(operations: readonly HonestOperation[], ask: Scene['ask'], startMs: number): Promise<Tally> {
  const tally = newTally();
  const served: Promise<void>[] = [];
  for (const operation of operations) {
    await sleep(startMs + operation.atMs - Date.now());
    served.push(serve(operation));
  }
  await Promise.all(served);
  return tally;

  async function serve({ document, want, key, visitor, variables }: HonestOperation): Promise<void> {
    const atMs = Date.now() - startMs;
    const answer = await ask(document, { key, visitor, variables });
    count(tally, want, answer, { atMs, endedAtMs: Date.now() - startMs });
  }
}

function createMixWorld(mix: Mix, seed: number): Promise<World> {
  const plan: StrictPlanOptions = { ...mix.plan, windows: 'fixed', tells: 'changing' };
  const store = createPetStore({ size: mix.pets, now: () => Date.now() });
  const keys = Object.fromEntries([...honestKeys(mix), ...VALID_KEYS].map((key) => [key, plan]));
  return createWorld({ seed, startsAt: STARTS_AT, keys, storeOf: () => store });
}

/** Starts what serves the clients: a process, or replicas that take turns. */
async function startAll(world: World, { plan: { perMinute, perDay }, replicas }: Mix): Promise<Petql[]> {
  const plan = `${perMinute}/${perDay}` as const;
  const options = { plan, maxWaitMs: MAX_WAIT_MS, log: silentLog };
  if (replicas === undefined) return [await world.start(options)];
  return startReplicas(world, createRedis({ seed: SEED }), replicas, options);
}

interface Place extends Pick<Scene, 'ask' | 'petApi'> {
  readonly startMs: number;
  readonly endMs: number;
}

function openScene(mix: Mix, { petApi, startMs, endMs, ask }: Place): Scene {
  const rules: FaultRule[] = [];
  petApi.fault = ({ key }) => [...rules, key.startsWith('honest') ? mix.usual : undefined];
  const at: Scene['at'] = (atMs, act) => void setTimeout(act, startMs + atMs - Date.now());

  return {
    petApi,
    honestKey: honestKeys(mix)[0] ?? '',
    ask,
    at,
    fail: ([fromMs, untilMs], rule) => void rules.push(during(startMs + fromMs, startMs + untilMs, rule)),
    every(everyMs, [fromMs, untilMs], act) {
      const lastMs = Math.min(untilMs, endMs - startMs);
      for (let index = 0; fromMs + index * everyMs < lastMs; index += 1) at(fromMs + index * everyMs, () => act(index));
    },
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
