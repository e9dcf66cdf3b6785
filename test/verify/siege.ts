import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import type { AttackName } from './siege/attacks.ts';
import { besiege } from './siege/besiege.ts';
import type { Besieged, Siege } from './siege/besiege.ts';
import { eventLoop } from './siege/event-loop.ts';
import type { Check, Suite } from './suite.ts';

const MAX_RESIDENT_MB = 512;
/** Of the heap, after a collection; callers and accounts are bounded by its size, documents by this. */
const MAX_GROWN_MB = 50;
/** 4 MiB of data, and the rest of the result. */
const MAX_RESULT_BYTES = 4_194_304 + 100_000;
const MAX_DELAY_P99_MS = 50;
/** A client that asks more seldom has shown nothing. */
const MAX_PAUSE_MS = 500;
const BRIEF_MS = 4_000;
const GOAL = `all are answered, the good client without a new call, within ${MAX_RESIDENT_MB} MB; event loop under ${MAX_DELAY_P99_MS} ms late (p99)`;

const REQUESTS: readonly AttackName[] = ['half-requests', 'large-bodies', 'costly-documents', 'long-errors'];
const DOCUMENTS: readonly AttackName[] = ['invalid-documents', 'valid-documents', 'documents-over-limits'];
const KEYS: readonly AttackName[] = ['rejected-keys', 'unused-keys', 'quotas-of-keys', 'creates-of-keys'];
const REDIS_KEYS = { attacks: KEYS, connections: 5, requests: 30_000, store: 'redis' } as const;

const SIEGES: Readonly<Record<string, Siege>> = {
  ...each(REQUESTS, { connections: 20 }),
  ...each(['clients-that-read-nothing'], { connections: 60 }),
  ...each(['slow-bodies'], { connections: 4_000 }),
  ...each(DOCUMENTS, { connections: 20, requests: 40_000, maxGrownMb: MAX_GROWN_MB }),
  ...each(KEYS, { connections: 20, requests: 30_000 }),
  'keys-state-file': { ...REDIS_KEYS, store: 'state-file' },
  'keys-redis': REDIS_KEYS,
  // Without Redis a new key waits for quota.
  'keys-redis-away': { ...REDIS_KEYS, args: ['--max-wait-ms', '50'], prepare: ({ redis }) => redis?.server.kill() },
  'keys-small-redis': {
    ...REDIS_KEYS,
    requests: 100_000,
    prepare: ({ redis }) => redis?.server.command('CONFIG', 'SET', 'maxmemory', '16mb'),
    judge: async ({ redis }) => /errorstat_OOM.*/.exec((await redis?.server.command('INFO', 'errorstats')) ?? '')?.[0],
  },
  'all-at-once': {
    attacks: [...REQUESTS, 'clients-that-read-nothing', ...DOCUMENTS, ...KEYS],
    connections: 2,
  },
};

export const siege: Suite = {
  about: 'costly documents, made-up keys and long results, in the memory of a small container',
  minutes: 0.3,
  checks: [...Object.entries(SIEGES).map(checkOf), eventLoop],
};

function each(names: readonly AttackName[], order: Omit<Siege, 'attacks'>): Record<string, Siege> {
  return Object.fromEntries(names.map((name) => [name, { ...order, attacks: [name] }]));
}

function checkOf([name, order]: [string, Siege]): Check {
  const run: Check['run'] = async ({ minutes, seed }) => {
    const durationMs = minutes * 60_000;
    const besieged = await besiege({ ...order, durationMs, seed });
    const { client, figures } = besieged;
    const late = !(figures.delayP99Ms < MAX_DELAY_P99_MS) && `the event loop was ${figures.delayP99Ms} ms late (p99)`;
    const isIdle = client.asked < durationMs / MAX_PAUSE_MS && `the good client asked only ${client.asked} times`;
    return [judged(GOAL, order, besieged, [late, isIdle])];
  };
  return { name, goal: GOAL, run };
}

/** Each attack for some seconds, held to no time. */
export async function besiegeBriefly(promise: string, seed: number): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const [name, order] of Object.entries(SIEGES)) {
    // Those of one attack are in the one of all.
    if (order.attacks.length === 1) continue;
    const besieged = await besiege({ ...order, requests: undefined, durationMs: BRIEF_MS, seed });
    rows.push(judged(`${promise}: ${name}`, order, besieged));
  }
  return rows;
}

function judged(promise: string, order: Siege, besieged: Besieged, others: readonly (string | false)[] = []): Row {
  const { maxGrownMb = Infinity } = order;
  const { client, report, problem, figures } = besieged;
  const { asked, answered, calls, slowestMs } = client;
  const { delayP99Ms, delayMaxMs, heapMb, grownMb, residentMb } = figures;
  const problems = [
    ...others,
    problem !== undefined && problem,
    answered < asked && `the good client got ${answered} results of ${asked}`,
    calls > 0 && `the good client's list cost ${calls} more calls`,
    report.answered < report.sent && `${report.answered} requests of ${report.sent} were answered`,
    report.maxBytes > MAX_RESULT_BYTES && `a result had ${report.maxBytes} bytes`,
    !(grownMb <= maxGrownMb) && `the heap grew by ${grownMb.toFixed(0)} MB`,
    !(residentMb <= MAX_RESIDENT_MB) && `petql held ${residentMb.toFixed(0)} MB`,
  ].filter((text) => text !== false);
  const measured =
    `${report.sent} sent; delay p99 ${delayP99Ms.toFixed(1)} ms, max ${delayMaxMs.toFixed(0)} ms; ` +
    `slowest result ${slowestMs.toFixed(0)} ms; heap ${heapMb.toFixed(0)} (+${grownMb.toFixed(0)}) of ${residentMb.toFixed(0)} MB`;
  return rowOf({ promise, looked: asked, problems, measured, figures });
}
