import { setTimeout } from 'node:timers/promises';
import { PLANS } from '../../../src/common/plan.ts';
import type { Plan } from '../../../src/common/plan.ts';
import { post } from '../../support/client.ts';
import type { QueryAnswer } from '../../support/client.ts';
import { maxOfVisitor } from '../../support/plan-rules.ts';
import { between } from '../../support/random.ts';
import type { Check } from '../suite.ts';
import { MINUTE_MS, scenario, startTrial } from './scenario.ts';
import type { Findings, Scene } from './scenario.ts';

const KEY = 'server-key';
const READ = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';
const CREATE = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } } }';
const KNOWN_PETS = 200;

interface Greed {
  readonly plan: Plan;
  readonly replicas: number;
  /** What the greedy visitor does. */
  readonly greedy: 'create' | 'known' | 'unknown';
  readonly everyMs: number;
  /** Pets in each operation. */
  readonly batch: number;
  /** How often one of five honest visitors reads a new pet. */
  readonly honestEveryMs: number;
}

const PRO = { plan: PLANS.pro, replicas: 1, honestEveryMs: 1_000 } as const;
const FREE = { plan: PLANS.free, replicas: 1, honestEveryMs: 3_000 } as const;
const IDS = { greedy: 'unknown', everyMs: 50, batch: 1 } as const;
const BATCHES = { greedy: 'unknown', everyMs: 1_000, batch: 100 } as const;

const GREEDS: Readonly<Record<string, Greed>> = {
  'ids-pro-1': { ...PRO, ...IDS },
  'ids-pro-3': { ...PRO, ...IDS, replicas: 3 },
  'batches-pro-1': { ...PRO, ...BATCHES },
  'batches-free-1': { ...FREE, ...BATCHES },
  'batches-free-3': { ...FREE, ...BATCHES, replicas: 3 },
  'known-pro-1': { ...PRO, greedy: 'known', everyMs: 250, batch: 10 },
  'creates-pro-1': { ...PRO, greedy: 'create', everyMs: 50, batch: 1 },
  'creates-pro-3': { ...PRO, greedy: 'create', everyMs: 50, batch: 1, replicas: 3 },
};

/** How long the greedy visitor acts, and when the honest ones come. */
const GREEDY_MS = 80_000;
const HONEST_AFTER_MS = 10_000;
const IN_FLIGHT = 10;

/** A greedy visitor beside honest ones, behind a server-side key. */
export const visitors: readonly Check[] = Object.entries(GREEDS).map(([name, greed]) => {
  const goal = 'each read of five honest visitors is served, no 429, and a greedy one gets half of each minute';
  return scenario({ name: `visitors-${name}`, goal, processes: greed.replicas }, (scene) => share(scene, greed));
});

async function share(
  scene: Scene,
  { plan, replicas, greedy, everyMs, batch, honestEveryMs }: Greed,
): Promise<Findings> {
  const { random } = scene;
  const args = ['--pet-api-key', KEY, '--visitor-header', 'x-forwarded-for', '--max-wait-ms', '10000'];
  const { petApi, fleet } = await startTrial(scene, { plan, replicas, args });
  const send = (visitor: string, query: string, variables: Record<string, unknown>): Promise<QueryAnswer> => {
    const endpoint = fleet.endpoints[between(random, 0, replicas - 1)] as () => string;
    return post(endpoint(), query, { variables, headers: { authorization: null, 'x-forwarded-for': visitor } });
  };
  let lastId = 1_000_000;
  const newIds = (count: number) => Array.from({ length: count }, () => String((lastId += 1)));
  const known = petApi.storeOf(KEY).hiddenIds().slice(0, KNOWN_PETS);
  const actGreedily = (turn: number): Promise<QueryAnswer> => {
    if (greedy === 'create') return send('greedy', CREATE, { input: { name: `greedy ${turn}`, categoryId: '1' } });
    const from = (turn * batch) % KNOWN_PETS;
    return send('greedy', READ, { ids: greedy === 'known' ? known.slice(from, from + batch) : newIds(batch) });
  };

  // petql learns the plan, and that no list shows these pets.
  await send('first', READ, { ids: newIds(1) });
  if (greedy === 'known') {
    for (let from = 0; from < KNOWN_PETS; from += 50)
      await send(`first ${from}`, READ, { ids: known.slice(from, from + 50) });
    await setTimeout(MINUTE_MS);
  }
  const warm = petApi.log.length;
  const acting = repeat(everyMs, GREEDY_MS, actGreedily);
  await setTimeout(HONEST_AFTER_MS);
  const honestIds = new Set<string>();
  const ofHonest = await repeat(honestEveryMs, GREEDY_MS - HONEST_AFTER_MS, (turn) => {
    const ids = newIds(1);
    honestIds.add(String(ids[0]));
    return send(`honest ${turn % 5}`, READ, { ids });
  });
  await acting;

  const log = petApi.log.slice(warm);
  const served = ofHonest.filter(({ errors }) => errors === undefined).length;
  const ofGreedy = log.filter(({ target }) => !honestIds.has(target));
  const minutes = Map.groupBy(ofGreedy, ({ atMs }) => Math.floor(atMs / MINUTE_MS));
  const most = Math.max(0, ...[...minutes.values()].map(({ length }) => length));
  const refusals = petApi.log.filter(({ status }) => status === 429).length;
  const mostOfGreedy = maxOfVisitor(plan.perMinute, replicas) + IN_FLIGHT;
  const problems = [
    served < ofHonest.length && `${served} of ${ofHonest.length} reads of honest visitors were served`,
    refusals > 0 && `${refusals} × 429`,
    most > mostOfGreedy && `the greedy visitor got ${most} calls of a minute, at most ${mostOfGreedy} expected`,
  ];
  return {
    calls: log.length,
    measured: `${served} of ${ofHonest.length} honest reads served, ${most} of ${plan.perMinute} calls of a minute for the greedy visitor, ${refusals} × 429`,
    problems: problems.filter((problem) => problem !== false),
  };
}

/** Acts again and again, whatever becomes of it; resolves once all is answered. */
async function repeat<T>(everyMs: number, forMs: number, act: (turn: number) => Promise<T>): Promise<T[]> {
  const acts: Promise<T>[] = [];
  const startedMs = performance.now();
  for (let turn = 0; turn * everyMs < forMs; turn += 1) {
    await setTimeout(Math.max(0, startedMs + turn * everyMs - performance.now()));
    acts.push(act(turn));
  }
  return Promise.all(acts);
}
