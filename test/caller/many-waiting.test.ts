import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Demand } from '../../src/caller/demand.ts';
import { listingFact } from '../../src/caller/fact.ts';
import { readFreshness } from '../../src/caller/freshness.ts';
import { createKnowledge } from '../../src/caller/knowledge.ts';
import { createReads } from '../../src/caller/reads.ts';
import { systemClock as clock } from '../../src/clock.ts';
import type { Int64 } from '../../src/int64.ts';
import { modelPet } from './model-store.ts';
import { steadyRoute } from './steady-route.ts';

const MANY = 2_000;
/** What one demand, or one call, may cost: enough for any number that does not grow with how many wait. */
const A_FEW = 100;
const FRESHNESS = readFreshness('max-age=0, max-stale=0', { maxAgeMs: 0, maxStaleMs: 0 });
const HUNDRED = Array.from({ length: 100 }, (_, index) => modelPet(index));

/** Reads of a key with a large plan, in a store that no listing shows. */
function startReads() {
  /** How often anything looked at a demand, and at the outlook of one. */
  let looks = 0;
  const places: (() => void)[] = [];
  const answers: (() => void)[] = [];
  const knowledge = createKnowledge();
  knowledge.learn(listingFact('all', HUNDRED, false, clock.elapsed() - 60_000));
  const throttle = {
    pass: (turn: { signal: AbortSignal }, send: () => Promise<any> | undefined) =>
      new Promise((resolve) => {
        places.push(() => {
          if (turn.signal.aborted) return resolve({ kind: 'refused', reason: 'aborted' });
          const sending = send();
          if (sending) void sending.then((answer) => resolve({ kind: 'answered', answer }));
          else resolve({ kind: 'unused' });
        });
      }),
    standing: () => undefined,
    outlook() {
      looks += 1;
      return { waitMs: 0, refused: { kind: 'refused', reason: 'plan', retryAfterMs: 1_000, window: 'MINUTE' } };
    },
    toldBy: () => Promise.resolve(true),
  };
  const ask = (value: any) =>
    new Promise((resolve) => {
      answers.push(() => resolve({ outcome: { kind: 'ok', value }, sent: true, rateLimit: undefined }));
    });
  const reads = createReads({
    apiKey: 'key',
    petApi: {
      getPet: (id: Int64) => ask(modelPet(Number(id))),
      listPets: () => ask({ pets: HUNDRED, complete: false }),
    } as any,
    throttle: throttle as any,
    refusedKey: { remainingMs: () => 0, refuse() {}, accept() {} } as any,
    getRoute: steadyRoute(),
    knowledge,
    allowance: { allows: () => true, spend: () => undefined, refund: () => undefined },
    clock,
    share: undefined,
    retryQuota: { called: () => undefined, room: 0, take: () => false },
    onRetry: () => undefined,
  });
  const wait = (demand: Demand, deadlineMs: number) =>
    reads.wait(demand, {
      freshness: FRESHNESS,
      deadlineMs,
      signal: undefined,
      charge: () => undefined,
      refund: () => undefined,
    });
  return {
    reads,
    places,
    answers,
    wait,
    waitForId: (id: number, deadlineMs: number) => wait(watched(id), deadlineMs),
    takeLooks() {
      const taken = looks;
      looks = 0;
      return taken;
    },
  };

  function watched(id: number): Demand {
    return {
      get kind() {
        looks += 1;
        return 'animal' as const;
      },
      id: String(id) as Int64,
    };
  }
}

test('when the deadlines of thousands come, each is looked at a few times, and not each time another one comes', async () => {
  const { waitForId, places, takeLooks } = startReads();
  const startMs = clock.elapsed();
  const waiting = Array.from({ length: MANY }, (_, index) =>
    waitForId(1_000 + index, startMs + 300 + (index % 100) / 100),
  );
  await setImmediate();
  expect(places).toHaveLength(100);
  const settled = await Promise.allSettled(waiting);
  expect(new Set(settled.map(({ status }) => status))).toEqual(new Set(['rejected']));
  expect(takeLooks()).toBeLessThan(MANY * A_FEW);
});

test('a call looks at what it is for, however many others wait', async () => {
  const { waitForId, places, answers, takeLooks } = startReads();
  const waiting = Array.from({ length: MANY }, (_, index) => waitForId(1_000 + index, clock.elapsed() + 60_000));
  await setImmediate();
  takeLooks();
  const calls = 500;
  for (let call = 0; call < calls; call += 1) {
    places.shift()?.();
    answers.shift()?.();
    await setImmediate();
  }
  expect(takeLooks()).toBeLessThan(calls * A_FEW);
  expect((await Promise.all(waiting.slice(0, calls))).map(({ pets }) => pets[0]?.id)).toEqual(
    Array.from({ length: calls }, (_, index) => String(1_000 + index)),
  );
  for (const place of places.splice(0)) place();
  for (const rest of waiting.slice(calls)) rest.catch(() => undefined);
});

test('whoever comes is looked at, and not all who wait already', async () => {
  const { waitForId, takeLooks } = startReads();
  for (let id = 0; id < MANY; id += 1) {
    void waitForId(1_000 + id, clock.elapsed() + 60_000);
    await Promise.resolve();
  }
  expect(takeLooks()).toBeLessThan(MANY * A_FEW);
});

test('what answers thousands at once answers a few in each turn of the event loop', async () => {
  const { wait, waitForId, places, answers } = startReads();
  void wait({ kind: 'listing', listing: 'all' }, clock.elapsed() + 60_000);
  let answered = 0;
  for (let index = 0; index < MANY; index += 1) {
    void waitForId(index % 100, clock.elapsed() + 60_000).then(() => {
      answered += 1;
    });
  }
  await setImmediate();
  places.shift()?.();
  answers.shift()?.();
  const steps: number[] = [];
  for (let before = 0; before < MANY; before = answered) {
    await setImmediate();
    steps.push(answered - before);
  }
  expect(Math.max(...steps)).toBeLessThanOrEqual(200);
});
