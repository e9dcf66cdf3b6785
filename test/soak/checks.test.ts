import { describe, expect, test } from 'vitest';
import type { Arrival } from '../prove/history.ts';
import type { StrictPlanOptions } from '../throttle/strict-plan.ts';
import { createAnswerCheck } from './checks/answers.ts';
import type { Check } from './checks/check.ts';
import { createLevelCheck } from './checks/levels.ts';
import type { Level } from './checks/levels.ts';
import { createPlanCheck } from './checks/plans.ts';
import { createProcessCheck } from './checks/processes.ts';
import { createTruthCheck } from './checks/truth.ts';
import { createWriteCheck } from './checks/writes.ts';
import { createDisturbances } from './disturbances.ts';
import type { DisturbanceKind } from './disturbances.ts';
import type { Answer, AnswerError, Asked, Operation, Outcome } from './operation.ts';
import { createPetStore } from './pet-store.ts';
import type { PetStore } from './pet-store.ts';

// A checker that finds nothing is worth something only where it finds what was planted.

const FIRST_ID = 2n ** 60n;

/** A world in which time is what a test says it is. */
function openWorld() {
  const clock = { nowMs: 0 };
  const now = () => clock.nowMs;
  const disturbances = createDisturbances(now);
  const store = createPetStore({ size: 3, firstId: FIRST_ID, now });
  return {
    store,
    disturbances,
    at: (nowMs: number) => (clock.nowMs = nowMs),
    disturb(kind: DisturbanceKind, fromMs: number, untilMs: number, replica?: number) {
      clock.nowMs = fromMs;
      const over = disturbances.begin(kind, replica);
      clock.nowMs = untilMs;
      over();
    },
    rules: {
      disturbances,
      storeOf: (key: string) => (key === 'a key' ? store : undefined),
      lateness: { during: () => 0, longestMs: 0 },
      upstreamTimeoutMs: 1_000,
      maxStaleMs: 600_000,
    },
  };
}

const operation = (startedMs: number, more: Partial<Operation> = {}): Operation => ({
  key: 'a key',
  replica: 0,
  life: 0,
  startedMs,
  endedMs: startedMs + 10,
  waitMs: 2_000,
  cacheControl: {},
  afterWriteMs: -Infinity,
  heardWrite: undefined,
  asked: [],
  meant: [],
  outcome: answered({ data: {} }),
  ...more,
});
const answered = (answer: Answer, httpStatus = 200): Outcome => ({ kind: 'answered', httpStatus, answer });
const failed = (code: string): Outcome => answered({ data: { f0: null }, errors: [error(code)] });
const error = (code: string): AnswerError => ({ message: 'No.', path: ['f0'], extensions: { code } });
const told = (value: unknown, oldestAgeMs?: number): Outcome =>
  answered({ data: { f0: value }, extensions: { petql: oldestAgeMs === undefined ? {} : { oldestAgeMs } } });

/** What a check says of these operations: the names of the broken promises, and how often each was explained. */
function verdict(check: Check, operations: readonly Operation[] = []) {
  for (const one of operations) check.see?.(one);
  check.finish?.();
  return {
    broken: check.tallies.filter(({ broken }) => broken > 0).map((tally) => tally.check),
    explained: check.tallies.filter(({ explained }) => explained > 0).map((tally) => tally.check),
    looked: check.tallies.filter(({ looked }) => looked > 0).map((tally) => tally.check),
  };
}

describe('answers', () => {
  const look = (operations: readonly Operation[], prepare = (_world: ReturnType<typeof openWorld>) => {}) => {
    const world = openWorld();
    prepare(world);
    const { broken, explained } = verdict(createAnswerCheck(world.rules), operations);
    return { broken, explained };
  };
  const lost: Outcome = { kind: 'lost', reason: 'socket hang up' };
  const [ONCE, IN_TIME, CONTRACT, CAUSED] = [
    'every operation is answered once',
    'inside its deadline',
    "errors are the contract's",
    'errors have a cause',
  ];

  test('that are sound break nothing', () => {
    const sound = [operation(0), operation(0, { outcome: { kind: 'left' } }), operation(0, { endedMs: 3_900 })];
    expect(look([...sound, operation(0, { outcome: failed('RATE_LIMITED') })])).toEqual({ broken: [], explained: [] });
  });

  test.each<[string, Partial<Operation>, string]>([
    ['a lost answer', { outcome: lost }, ONCE],
    ['an operation that hangs', { outcome: { kind: 'hung' } }, ONCE],
    ['a late answer', { endedMs: 1_000 + 2_000 + 1_000 + 1_100 }, IN_TIME],
    ['a masked error', { outcome: failed('INTERNAL_SERVER_ERROR') }, CONTRACT],
    ['a code that nobody knows', { outcome: failed('OOPS') }, CONTRACT],
    ['an error without a code', { outcome: answered({ errors: [{ message: 'No.' }] }) }, CONTRACT],
    ['an HTTP status of our own making', { outcome: answered({ data: {} }, 500) }, CONTRACT],
    ['a failure of a service that has none', { outcome: failed('DOWNSTREAM_SERVICE_ERROR') }, CAUSED],
    ['NOT_CACHED that was not asked for', { outcome: failed('NOT_CACHED') }, CAUSED],
    ['a creation refused while Redis is well', { outcome: failed('IDEMPOTENCY_UNAVAILABLE') }, CAUSED],
    ['a wrong document that is carried out', { meant: ['BAD_USER_INPUT'] }, CAUSED],
  ])('%s is found', (_name, more, promise) => {
    expect(look([operation(1_000, more)]).broken).toEqual([promise]);
  });

  test('are explained by what was done to the parts, and by nothing else', () => {
    const killed = look([operation(1_000, { outcome: lost })], ({ disturb }) => disturb('killed', 1_005, 1_500, 0));
    expect(killed).toEqual({ broken: [], explained: [ONCE] });
    const another = look([operation(1_000, { outcome: lost })], ({ disturb }) => disturb('killed', 1_005, 1_500, 1));
    expect(another.broken).toEqual([ONCE]);
    const frozen = look([operation(1_000, { endedMs: 9_000 })], ({ disturb }) => disturb('frozen', 2_000, 8_000, 0));
    expect(frozen).toEqual({ broken: [], explained: [IN_TIME] });
    const failing = [operation(1_000, { outcome: failed('GATEWAY_TIMEOUT') })];
    expect(look(failing, ({ disturb }) => disturb('upstream', 500, 900)).explained).toEqual([CAUSED]);
    expect(look(failing, ({ disturb }) => disturb('redis', 500, 900)).broken).toEqual([CAUSED]);
  });

  test('that were on their way at SIGTERM must come, and later ones need not', () => {
    const stopped = (startedMs: number) =>
      look([operation(startedMs, { endedMs: 2_000, outcome: lost })], ({ disturb }) =>
        disturb('stopping', 1_000, 3_000, 0),
      );
    expect(stopped(600).broken).toEqual([ONCE]);
    expect(stopped(900).explained).toEqual([ONCE]);
  });
});

describe('data', () => {
  const wire = (id: bigint, name: string, status: string | null) => {
    return { id: String(id), name, categoryId: '3', status };
  };
  const FIRST = [
    wire(FIRST_ID, 'First 0', 'AVAILABLE'),
    wire(FIRST_ID + 1n, 'First 1', 'PENDING'),
    wire(FIRST_ID + 2n, 'First 2', 'SOLD'),
  ];
  const ALL: Asked = { kind: 'pets', status: undefined, limit: 100 };
  const [TRUE, AGE, OWN, HEARD, APART] = [
    'data was true within its stated age',
    'no older than was asked for',
    'a creation is seen by what follows it',
    'a creation is seen by the other replicas',
    'no key sees what is of another',
  ];

  /** At 1,000 somebody adds Momo; the answer to what was asked at 2,000 came at 2,010. */
  function look(
    asked: Asked,
    outcome: Outcome,
    more: Partial<Operation> = {},
    prepare = (_world: ReturnType<typeof openWorld>) => {},
  ) {
    const world = openWorld();
    world.at(1_000);
    addTo(world.store, 'Momo');
    prepare(world);
    world.at(10_000);
    const check = createTruthCheck(world.rules);
    return verdict(check, [operation(2_000, { asked: [asked], outcome, ...more })]);
  }
  const heardWrite = { atMs: 1_001, toldMs: 1_010 };
  const momo = wire(FIRST_ID + 3n, 'Momo', 'AVAILABLE');
  const withMomo = [...FIRST, momo];

  test('that is true now, or was within its age, breaks nothing', () => {
    expect(look(ALL, told(withMomo, 3)).broken).toEqual([]);
    expect(look(ALL, told(FIRST, 1_100)).broken).toEqual([]);
    expect(look({ kind: 'pets', status: 'available', limit: 1 }, told([FIRST[0]], 3)).broken).toEqual([]);
    expect(look({ kind: 'pet', id: momo.id }, told(momo, 3)).broken).toEqual([]);
    expect(look({ kind: 'pet', id: '77' }, told(null, 3)).broken).toEqual([]);
    expect(look(ALL, told(withMomo, 3), { afterWriteMs: 1_000, heardWrite })).toMatchObject({
      broken: [],
      looked: [TRUE, AGE, OWN, HEARD, APART],
    });
  });

  test.each<[string, Asked, Outcome, Partial<Operation> & { breaks: string }]>([
    ['an answer that is older than it says', ALL, told(FIRST, 900), { endedMs: 2_000, breaks: TRUE }],
    ['a listing with an animal too few', ALL, told(withMomo.slice(1), 3), { breaks: TRUE }],
    ['a listing in the wrong order', ALL, told(withMomo.toReversed(), 3), { breaks: TRUE }],
    ['a listing that is cut short', { ...ALL, limit: 3 }, told(FIRST.slice(0, 2), 3), { breaks: TRUE }],
    ['another status', { kind: 'pet', id: momo.id }, told({ ...momo, status: 'SOLD' }, 3), { breaks: TRUE }],
    ['null for an animal that is there', { kind: 'pet', id: momo.id }, told(null, 3), { breaks: TRUE }],
    ['answers in the wrong order', { kind: 'petsById', ids: [momo.id, '77'] }, told([null, momo], 3), { breaks: TRUE }],
    [
      'an id that lost digits',
      { kind: 'pet', id: momo.id },
      told({ ...momo, id: String(BigInt(Number(momo.id))) }, 3),
      { breaks: TRUE },
    ],
    ['data without an age', ALL, told(withMomo), { breaks: TRUE }],
    ['an answer older than may be served', ALL, told(FIRST, 602_000), { breaks: AGE }],
    ['an answer older than max-age', ALL, told(FIRST, 3_100), { cacheControl: { maxAge: 2 }, breaks: AGE }],
    ['a stored answer to no-cache', ALL, told(FIRST, 1_100), { cacheControl: { noCache: true }, breaks: AGE }],
    ['what was known before an own creation', ALL, told(FIRST, 1_100), { afterWriteMs: 1_001, breaks: OWN }],
    ['what was known before a creation that all have heard of', ALL, told(FIRST, 1_100), { heardWrite, breaks: HEARD }],
  ])('%s is found', (_name, asked, outcome, { breaks, ...more }) => {
    expect(look(asked, outcome, more).broken).toEqual([breaks]);
  });

  test('from before a creation elsewhere is explained by a Redis that was harmed, and by a replica that was stopped', () => {
    const outdated = (kind: DisturbanceKind, replica?: number) =>
      look(ALL, told(FIRST, 1_100), { heardWrite }, ({ disturb }) => disturb(kind, 1_200, 1_300, replica));
    expect(outdated('redis')).toMatchObject({ broken: [], explained: [HEARD] });
    expect(outdated('frozen', 0)).toMatchObject({ broken: [], explained: [HEARD] });
    expect(outdated('frozen', 1).broken).toEqual([HEARD]);
    expect(outdated('upstream').broken).toEqual([HEARD]);
  });

  test('of another key is found', () => {
    const stranger = wire(77n, 'Stranger', 'SOLD');
    expect(look({ kind: 'pet', id: '77' }, told(stranger, 3)).broken).toContain(APART);
  });
});

describe('creations', () => {
  const pet = { name: 'Momo', categoryId: '3', status: 'available', idempotencyKey: 'momo-1' } as const;
  const submit = (outcome: Outcome, startedMs = 2_000) =>
    operation(startedMs, { asked: [{ kind: 'create', pet }], outcome });
  const created = (id: bigint) => told({ pet: { id: String(id) }, userErrors: [] });
  const [ONCE, STORED, SAME, UNKNOWN, REFUSED] = [
    'no animal is added twice',
    'a success is in the store',
    'one key has one outcome',
    'an unknown outcome is unknown',
    'what was refused was not added',
  ];
  const ID = FIRST_ID + 3n;

  /** Momo was added so often. */
  function look(
    times: number,
    operations: readonly Operation[],
    prepare = (_world: ReturnType<typeof openWorld>) => {},
  ) {
    const world = openWorld();
    for (let index = 0; index < times; index += 1) addTo(world.store, 'Momo');
    prepare(world);
    return verdict(createWriteCheck(world.rules), operations);
  }

  test('that were carried out once, not at all, or nobody knows, break nothing', () => {
    expect(look(1, [submit(created(ID)), submit(created(ID), 3_000)])).toMatchObject({
      broken: [],
      looked: [ONCE, STORED, SAME],
    });
    expect(look(0, [submit(failed('RATE_LIMITED'))])).toMatchObject({ broken: [], looked: [ONCE, REFUSED] });
    expect(look(1, [submit({ kind: 'lost', reason: 'cut' }), submit(failed('RATE_LIMITED'))]).broken).toEqual([]);
    const unknown = look(1, [submit(failed('OUTCOME_UNKNOWN'))], ({ disturb }) => disturb('upstream', 1_500, 1_900));
    expect(unknown).toMatchObject({ broken: [], looked: [ONCE, UNKNOWN] });
  });

  test.each<[string, number, Operation[], string[]]>([
    ['an animal that was added twice', 2, [submit(created(ID))], [ONCE]],
    ['a success that is not in the store', 0, [submit(created(ID))], [STORED]],
    ['a success with an id of another', 1, [submit(created(FIRST_ID))], [STORED]],
    ['two outcomes of one key', 2, [submit(created(ID)), submit(created(ID + 1n))], [ONCE, SAME]],
    ['an unknown outcome in a quiet time', 1, [submit(failed('OUTCOME_UNKNOWN'))], [UNKNOWN]],
    ['a refusal of what was added', 1, [submit(failed('RATE_LIMITED'))], [REFUSED]],
    ['userErrors of what was added', 1, [submit(told({ pet: null, userErrors: [{}] }))], [REFUSED]],
  ])('%s is found', (_name, times, operations, promises) => {
    expect(look(times, operations).broken).toEqual(promises);
  });

  test('under a key that Redis has lost may be two', () => {
    const operations = [submit(created(ID)), submit(created(ID + 1n), 5_000)];
    expect(look(2, operations, ({ disturb }) => disturb('emptied', 4_000, 4_000))).toMatchObject({
      broken: [],
      explained: [ONCE, SAME],
    });
  });
});

describe('plans', () => {
  const PLAN: StrictPlanOptions = { perMinute: 60, perDay: 1_000, windows: 'fixed', tells: 'minute' };
  const arrival = (atMs: number, status: number): Arrival => ({
    key: 'a key',
    atMs,
    answeredAtMs: atMs + 10,
    method: 'GET',
    name: undefined,
    status,
    retryAfterMs: status === 429 ? 20_000 : undefined,
  });
  const [KEPT, CLOSED] = ['no call is over the plan (429)', 'after a 429 nobody calls'];
  const look = (arrivals: readonly Arrival[], prepare = (_world: ReturnType<typeof openWorld>) => {}) => {
    const world = openWorld();
    prepare(world);
    const { disturbances } = world;
    return verdict(createPlanCheck({ arrivals, planOf: () => PLAN, disturbances, soakTime: (atMs) => atMs }));
  };

  test('that are kept break nothing', () => {
    expect(look([arrival(0, 200), arrival(10, 201), arrival(20, 503)])).toMatchObject({ broken: [], explained: [] });
  });

  test('that are overrun are found, but for one moment of a key after Redis was harmed', () => {
    const harmed =
      (fromMs: number, untilMs: number) =>
      ({ disturb }: ReturnType<typeof openWorld>) =>
        disturb('redis', fromMs, untilMs);
    expect(look([arrival(50_000, 429)]).broken).toEqual([KEPT]);
    const together = [arrival(50_000, 429), arrival(50_300, 429)];
    expect(look(together, harmed(20_000, 25_000))).toMatchObject({ broken: [], explained: [KEPT] });
    expect(look([arrival(20_000, 429), arrival(60_000, 429)], harmed(10_000, 15_000)).broken).toEqual([KEPT]);
    expect(look([arrival(50_000, 429)], harmed(60_000, 61_000)).broken).toEqual([KEPT]);
    expect(look([arrival(150_000, 429)], harmed(20_000, 25_000)).broken).toEqual([KEPT]);
  });

  test('that find out by several calls, since the answers are lost, are one moment too', () => {
    const probes = [arrival(50_000, 429), arrival(51_500, 429), arrival(53_000, 429)];
    const deaf = (world: ReturnType<typeof openWorld>) => {
      world.disturb('redis', 49_000, 49_500);
      world.disturb('upstream', 48_000, 52_000);
    };
    expect(look(probes, deaf)).toMatchObject({ broken: [], explained: [KEPT] });
    expect(look([...probes, arrival(55_000, 429)], deaf).broken).toEqual([KEPT]);
    expect(look(probes, ({ disturb }) => disturb('redis', 49_000, 49_500)).broken).toContain(KEPT);
  });

  test('find a call before a Retry-After is over, unless the 429 may have been lost on its way', () => {
    const early = [arrival(0, 429), arrival(10_000, 200)];
    expect(look(early).broken).toEqual([KEPT, CLOSED]);
    expect(look(early, ({ disturb }) => disturb('upstream', 0, 500)).broken).toEqual([KEPT]);
  });

  test('find a ban', () => {
    expect(look([arrival(0, 403)]).broken).toEqual(['no key is banned (403)']);
  });
});

describe('levels', () => {
  const EVERY_MS = 5_000;
  const FLAT: Omit<Level, 'atMs'> = { fds: 60, handles: 40, heapMb: 50, rssMb: 200 };
  const look = (grown: (minutes: number) => Partial<Level>, samples = 240) => {
    const levels = Array.from({ length: samples }, (_, index) => {
      const atMs = index * EVERY_MS;
      return { ...FLAT, ...grown(atMs / 60_000), atMs };
    });
    return verdict(createLevelCheck(() => [{ name: 'replica 0.0', levels }]));
  };

  test('that rise and fall, or rise while caches fill, break nothing', () => {
    const wave = (minutes: number) => ({
      heapMb: 50 + 40 * Math.abs(Math.sin(minutes * 7)),
      fds: 60 + (minutes % 2) * 10,
    });
    expect(look(wave)).toMatchObject({ broken: [], looked: expect.arrayContaining(['the heap is flat (MB)']) });
    expect(look((minutes) => ({ rssMb: 100 + Math.min(minutes, 4) * 50 })).broken).toEqual([]);
  });

  test('that a harm raises for most of the last looks break nothing', () => {
    const harmed = (minutes: number) => minutes > 15.5 && minutes < 19.8;
    expect(look((minutes) => (harmed(minutes) ? { fds: 120, handles: 200 } : {})).broken).toEqual([]);
  });

  test.each<[string, (minutes: number) => Partial<Level>, string]>([
    ['a file descriptor every ten seconds', (minutes) => ({ fds: 60 + minutes * 6 }), 'file descriptors are flat'],
    ['timers that are left', (minutes) => ({ handles: 40 + minutes * 10 }), 'timers and handles are flat'],
    ['a heap that grows', (minutes) => ({ heapMb: 50 + minutes * 3 }), 'the heap is flat (MB)'],
    ['memory beside the heap', (minutes) => ({ rssMb: 200 + minutes * 12 }), 'the resident memory is flat (MB)'],
  ])('%s is found', (_name, grown, promise) => {
    expect(look(grown).broken).toEqual([promise]);
  });
});

describe('processes', () => {
  const end = { name: 'replica 0.0', asked: 'stop', exit: 0, tookMs: 100 } as const;
  const look = (act: (check: ReturnType<typeof createProcessCheck>) => void) => {
    const check = createProcessCheck();
    act(check);
    return verdict(check).broken;
  };

  test('that do as they are told break nothing', () => {
    const warning = JSON.stringify({ level: 40, msg: 'Redis is away' });
    expect(
      look((check) => {
        check.ended(end);
        check.ended({ ...end, asked: 'kill', exit: 'SIGKILL' });
        check.logged('replica 0.0', warning);
      }),
    ).toEqual([]);
  });

  test('that end by themselves, end badly, or complain are found', () => {
    expect(look(({ ended }) => ended({ ...end, asked: undefined, exit: 1 }))).toEqual(['no process ends by itself']);
    expect(look(({ ended }) => ended({ ...end, exit: 1 }))).toEqual(['SIGTERM ends in exit code 0']);
    expect(look(({ ended }) => ended({ ...end, tookMs: 11_000 }))).toEqual(['SIGTERM ends in exit code 0']);
    for (const line of [JSON.stringify({ level: 50, msg: 'Oops' }), '(node:1) Warning: leak', '{"level":"high"}']) {
      expect(look(({ logged }) => logged('replica 0.0', line))).toEqual(['no error in the log']);
    }
  });
});

function addTo(store: PetStore, name: string): void {
  const body = JSON.stringify({ name, categoryId: 3, status: 'available' });
  expect(store.serve({ method: 'POST', url: '/v1/pets', body }).status).toBe(201);
}
