import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createNamedRecords } from '../../src/caller/named-records.ts';
import type { Int64 } from '../../src/int64.ts';
import { createInsistentRecords } from '../../src/store/insistent-records.ts';
import type { Records } from '../../src/store/records.ts';
import { openStateFile } from '../../src/store/state-file.ts';
import { StoreAway } from '../../src/store/store-away.ts';
import { createCallerNames } from '../../src/throttle/caller-names.ts';
import { createSimulatedUpstream, later, startReplica, submit } from './simulation.ts';
import type { Fate, Journey, SimulatedReplica } from './simulation.ts';

beforeAll(() => {
  vi.useFakeTimers();
});
afterAll(() => {
  vi.useRealTimers();
});

const FATES: Fate[] = [
  ...(['400', '401', '403', '429', '500', '500-stored', 'ok', 'reset', 'reset-stored', 'timeout'] as const),
  ...(['timeout-stored', 'unreachable', 'unreadable-stored'] as const),
];

/** What says that nothing is kept of this submit; whoever gets it may repeat it. */
const NO_OUTCOME =
  /^(?:gone|RATE_LIMITED|UNAUTHENTICATED|FORBIDDEN|DOWNSTREAM_SERVICE_ERROR|IDEMPOTENCY_UNAVAILABLE|OUTCOME_PENDING)$/;

const shortMs = fc.oneof(fc.nat(30), fc.nat(4_000));
const journeys = fc.array(
  fc.record({
    fate: fc.oneof(
      { weight: 1, arbitrary: fc.constant('ok' as const) },
      { weight: 2, arbitrary: fc.constantFrom(...FATES) },
    ),
    thereMs: shortMs,
    backMs: fc.nat(900),
  }),
  { minLength: 1, maxLength: 12 },
);
/** One client, which submits one thing again and again. */
const client = fc.record({
  apiKey: fc.constantFrom('a', 'b'),
  key: fc.constantFrom('1', '2'),
  input: fc.oneof({ weight: 6, arbitrary: fc.constant('7') }, { weight: 1, arbitrary: fc.constant('8') }),
  submits: fc.array(
    fc.record({
      afterMs: fc.oneof(fc.constant(0), shortMs),
      replica: fc.nat(2),
      waitMs: fc.oneof(fc.constant(10_000), fc.nat(3_000)),
      abortAfterMs: fc.option(shortMs, { nil: undefined }),
    }),
    { minLength: 1, maxLength: 5 },
  ),
});
const scenario = fc.record({
  journeys,
  clients: fc.array(client, { minLength: 1, maxLength: 6 }),
  /** After so long a replica is killed, and another one starts in its place. */
  kills: fc.array(fc.record({ atMs: fc.nat(20_000), replica: fc.nat(2) }), { maxLength: 4 }),
  /** How the store answers, one call after another. */
  store: fc.array(
    fc.record({
      thereMs: fc.nat(40),
      backMs: fc.nat(40),
      does: fc.constantFrom('all', 'all', 'all', 'nothing', 'unheard'),
    }),
    { minLength: 1, maxLength: 20 },
  ),
});

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

interface Told {
  /** Whose creation it is: the caller and its idempotency key. */
  readonly creation: string;
  readonly outcome: string;
}

/** Plays it on fake time. At its end everything works, and every creation is submitted once more. */
async function play({ journeys: travels, clients, kills }: Scenario, records: Records) {
  let turn = 0;
  let over = false;
  const fine: Journey = { fate: 'ok', thereMs: 1, backMs: 1 };
  const upstream = createSimulatedUpstream(() => (over ? fine : (travels[(turn += 1) % travels.length] ?? fine)));
  const named = createNamedRecords(records, createCallerNames(randomUUID()));
  const start = () => startReplica(upstream, { records: createInsistentRecords(named), leaseMs: 7_000 });
  const replicas: SimulatedReplica[] = [start(), start(), start()];
  const told: Told[] = [];

  const killing = kills.map(async ({ atMs, replica }) => {
    await later(atMs);
    replicas[replica]?.kill();
    replicas[replica] = start();
  });
  const asking = clients.map(async ({ apiKey, key, input, submits: repetitions }) => {
    for (const { afterMs, replica, waitMs, abortAfterMs } of repetitions) {
      await later(afterMs);
      const visitor = new AbortController();
      if (abortAfterMs !== undefined) void later(abortAfterMs).then(() => visitor.abort());
      const signal = visitor.signal;
      await ask(replicas[replica] as SimulatedReplica, { apiKey, key, input, waitMs, signal });
    }
  });
  await Promise.all([...killing, ...asking]);
  over = true;
  await later(3_600_000);
  const last = start();
  for (const one of clients) await ask(last, { ...one, waitMs: 10_000 });
  return { told, stored: upstream.stored };

  async function ask(
    replica: SimulatedReplica,
    {
      apiKey,
      key,
      input,
      ...rest
    }: { apiKey: string; key: string; input: string; waitMs: number; signal?: AbortSignal },
  ): Promise<void> {
    const creation = `${apiKey}${key}`;
    const pet = { name: creation, categoryId: input as Int64, status: undefined };
    const answer = submit(replica.withKey(apiKey), pet, { key, ...rest });
    // Of a replica that was killed nobody hears again.
    const outcome = await Promise.race([answer, later(60_000).then(() => 'gone')]);
    told.push({ creation, outcome });
  }
}

async function playOut(one: Scenario, records: Records) {
  const playing = play(one, records);
  const ended = playing.then(
    () => true,
    () => true,
  );
  const step = () => vi.advanceTimersByTimeAsync(10_000).then(() => false);
  while (!(await Promise.race([ended, step()])));
  return playing;
}

function outcomesOf(told: readonly Told[]): Map<string, Set<string>> {
  const byCreation = new Map<string, Set<string>>();
  for (const { creation, outcome } of told) {
    const outcomes = byCreation.get(creation) ?? new Set();
    byCreation.set(creation, outcomes);
    if (!NO_OUTCOME.test(outcome) && outcome !== 'BAD_USER_INPUT') outcomes.add(outcome);
  }
  return byCreation;
}

const runs = {
  numRuns: Number(process.env['FUZZ_RUNS'] ?? 40),
  seed: Number(process.env['FUZZ_SEED'] ?? Date.now()),
  endOnFailure: false,
};

test('however clients, calls and replicas end, at most one animal is stored and everybody is told the same', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (one) => {
      const { told, stored } = await playOut(one, openStateFile(':memory:', Date.now).records);
      for (const [creation, outcomes] of outcomesOf(told)) {
        expect(stored.filter(({ name }) => name === creation).length).toBeLessThanOrEqual(1);
        expect([...outcomes]).toHaveLength(1);
      }
    }),
    runs,
  );
}, 120_000);

test('a store that comes and goes costs an answer, never a second animal', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async (one) => {
      const { told, stored } = await playOut(one, unreliable(one));
      for (const [creation, outcomes] of outcomesOf(told)) {
        expect(stored.filter(({ name }) => name === creation).length).toBeLessThanOrEqual(1);
        // What nobody knew may become known when a replica can write down what it knows.
        outcomes.delete('OUTCOME_UNKNOWN');
        expect(outcomes.size).toBeLessThanOrEqual(1);
      }
    }),
    runs,
  );
}, 120_000);

/** A store that does not always hear, and whose answers do not always come. */
function unreliable({ store }: Scenario): Records {
  const { records } = openStateFile(':memory:', Date.now);
  let turn = 0;
  const ask = async <T>(call: () => Promise<T>): Promise<T> => {
    const { thereMs, backMs, does } = store[(turn += 1) % store.length] ?? { thereMs: 0, backMs: 0, does: 'all' };
    await later(thereMs);
    if (does === 'nothing') throw new StoreAway('away');
    const answer = await call();
    await later(backMs);
    if (does === 'unheard') throw new StoreAway('away');
    return answer;
  };
  return {
    find: (name, input) => ask(() => records.find(name, input)),
    begin: (name, attempt) => ask(() => records.begin(name, attempt)),
    settle: (name, attempt, outcome) => ask(() => records.settle(name, attempt, outcome)),
    release: (name, attempt) => ask(() => records.release(name, attempt)),
    close: () => records.close(),
  };
}
