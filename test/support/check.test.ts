import { describe, expect, test } from 'vitest';
import { createAnswerCheck } from './check-answers.ts';
import type { Check } from './check-answers.ts';
import { createReadCheck } from './check-reads.ts';
import { createWriteCheck } from './check-writes.ts';
import { createFaults } from './faults.ts';
import type { FaultKind } from './faults.ts';
import type { Answer, AnswerError, Field, Operation, Outcome } from './operation.ts';
import { createPetStore } from './pet-api/pet-store.ts';
import type { PetStore } from './pet-api/pet-store.ts';

// A checker that finds nothing is worth something only where it finds what was planted.

const FIRST_ID = 2n ** 60n;

/** A world in which the test sets the time. */
function openWorld() {
  const clock = { nowMs: 0 };
  const now = () => clock.nowMs;
  const faults = createFaults(now);
  const store = createPetStore({ size: 3, firstId: FIRST_ID, now });
  return {
    store,
    at: (nowMs: number) => (clock.nowMs = nowMs),
    harm: (kind: FaultKind, fromMs: number, untilMs: number, replica?: number) => {
      clock.nowMs = fromMs;
      const over = faults.begin(kind, replica);
      clock.nowMs = untilMs;
      over();
    },
    rules: {
      faults,
      storeOf: (key: string) => (key === 'a key' ? store : undefined),
      upstreamTimeoutMs: 1_000,
      maxStaleMs: 600_000,
    },
  };
}
type Prepare = (world: ReturnType<typeof openWorld>) => void;

const operation = (startedMs: number, more: Partial<Operation> = {}): Operation => ({
  key: 'a key',
  replica: 0,
  startedMs,
  endedMs: startedMs + 10,
  waitMs: 2_000,
  fields: [],
  outcome: answered({ data: {} }),
  ...more,
});
const answered = (answer: Answer, httpStatus = 200): Outcome => ({ kind: 'answered', httpStatus, answer });
const failed = (code: string): Outcome => answered({ data: { f0: null }, errors: [error(code)] });
const error = (code: string): AnswerError => ({ message: 'No.', path: ['f0'], extensions: { code } });
const shown = (value: unknown, oldestAgeMs?: number): Outcome =>
  answered({ data: { f0: value }, extensions: { petql: oldestAgeMs === undefined ? {} : { oldestAgeMs } } });

/** The promises that these operations break, and those whose breaks are explained. */
function verdict(check: Check, operations: readonly Operation[]) {
  for (const one of operations) check.see?.(one);
  check.finish?.();
  return {
    broken: check.rows.flatMap(({ broken, promise }) => (broken > 0 ? promise : [])),
    explained: check.rows.flatMap(({ explained, promise }) => (explained > 0 ? promise : [])),
  };
}

describe('responses', () => {
  const look = (operations: readonly Operation[], prepare: Prepare = () => {}) => {
    const world = openWorld();
    prepare(world);
    return verdict(createAnswerCheck(world.rules), operations);
  };
  const lost: Outcome = { kind: 'lost', reason: 'socket hang up' };
  const [ANSWERED, IN_TIME, CONTRACT, CAUSED] = [
    'every operation is answered',
    'inside its deadline',
    "errors are the contract's",
    'errors have a cause',
  ];

  test('that are sound break nothing', () => {
    const sound = [operation(0), operation(0, { outcome: { kind: 'left' } }), operation(0, { endedMs: 3_900 })];
    expect(look([...sound, operation(0, { outcome: failed('RATE_LIMITED') })])).toEqual({ broken: [], explained: [] });
  });

  test.each<[string, Partial<Operation>, string]>([
    ['a lost response', { outcome: lost }, ANSWERED],
    ['an operation that hangs', { outcome: { kind: 'hung' } }, ANSWERED],
    ['a late response', { endedMs: 1_000 + 2_000 + 1_000 + 1_100 }, IN_TIME],
    ['a masked error', { outcome: failed('INTERNAL_SERVER_ERROR') }, CONTRACT],
    ['an unknown code', { outcome: failed('OOPS') }, CONTRACT],
    ['an HTTP status that is not in the contract', { outcome: answered({ data: {} }, 500) }, CONTRACT],
    ['a failure of a sound upstream', { outcome: failed('DOWNSTREAM_SERVICE_ERROR') }, CAUSED],
    ['NOT_CACHED without only-if-cached', { outcome: failed('NOT_CACHED') }, CAUSED],
    ['a create refused while Redis is well', { outcome: failed('IDEMPOTENCY_UNAVAILABLE') }, CAUSED],
    ['a wrong document that is executed', { expected: ['BAD_USER_INPUT'] }, CAUSED],
  ])('%s is found', (_name, more, promise) => {
    expect(look([operation(1_000, more)]).broken).toEqual([promise]);
  });

  const timeout = failed('GATEWAY_TIMEOUT');
  test.each<[string, number, Partial<Operation>, [FaultKind, number, number, number?], object]>([
    ['a kill', 1_000, { outcome: lost }, ['killed', 1_005, 1_500, 0], { explained: [ANSWERED] }],
    ['no kill of another', 1_000, { outcome: lost }, ['killed', 1_005, 1_500, 1], { broken: [ANSWERED] }],
    ['SIGTERM', 900, { outcome: lost }, ['stopping', 1_000, 3_000, 0], { explained: [ANSWERED] }],
    ['no later SIGTERM', 600, { outcome: lost }, ['stopping', 1_000, 3_000, 0], { broken: [ANSWERED] }],
    ['SIGSTOP', 1_000, { endedMs: 9_000 }, ['frozen', 2_000, 8_000, 0], { explained: [IN_TIME] }],
    ['a bad upstream', 1_000, { outcome: timeout }, ['upstream', 500, 900], { broken: [] }],
    ['no bad Redis', 1_000, { outcome: timeout }, ['redis', 500, 900], { broken: [CAUSED] }],
  ])('are explained by %s', (_name, startedMs, more, ...[fault, expected]) => {
    expect(look([operation(startedMs, more)], ({ harm }) => harm(...fault))).toMatchObject(expected);
  });
});

describe('data', () => {
  const wire = (id: bigint, name: string, status: string | null) => {
    return { id: String(id), name, categoryId: '3', status };
  };
  const FIRST = ['AVAILABLE', 'PENDING', 'SOLD'].map((status, index) => {
    const id = FIRST_ID + BigInt(index);
    return wire(id, `Pet ${id}`, status);
  });
  const ALL: Field = { kind: 'pets', list: 'all', limit: 100 };
  const [TRUE, AGE, OWN, HEARD, APART] = [
    'data was true within its stated age',
    'no older than was asked for',
    'a create is seen by what follows it',
    'a create is seen by the other replicas',
    'no key sees data of another',
  ];

  /** Momo is added at 1,000; the response to what was sent at 2,000 came at 2,010. */
  function look(field: Field, outcome: Outcome, more: Partial<Operation> = {}, prepare: Prepare = () => {}) {
    const world = openWorld();
    world.at(1_000);
    addMomo(world.store);
    prepare(world);
    world.at(10_000);
    return verdict(createReadCheck(world.rules), [operation(2_000, { fields: [field], outcome, ...more })]);
  }
  const heardWrite = { createdMs: 1_001, answeredMs: 1_010 };
  const momo = wire(FIRST_ID + 3n, 'Momo', 'AVAILABLE');
  const withMomo = [...FIRST, momo];
  const rounded = String(BigInt(Number(momo.id)));

  test('that is true now, or was within its age, breaks nothing', () => {
    expect(look(ALL, shown(withMomo, 3)).broken).toEqual([]);
    expect(look(ALL, shown(FIRST, 1_100)).broken).toEqual([]);
    expect(look({ kind: 'pets', list: 'available', limit: 1 }, shown([FIRST[0]], 3)).broken).toEqual([]);
    expect(look({ kind: 'pet', id: momo.id }, shown(momo, 3)).broken).toEqual([]);
    expect(look({ kind: 'pet', id: '77' }, shown(null, 3)).broken).toEqual([]);
    expect(look(ALL, shown(withMomo, 3), { afterWriteMs: 1_000, heardWrite })).toEqual({ broken: [], explained: [] });
  });

  test.each<[string, Field, Outcome, Partial<Operation> & { breaks: string }]>([
    ['data that is older than it says', ALL, shown(FIRST, 900), { endedMs: 2_000, breaks: TRUE }],
    ['a list with a pet too few', ALL, shown(withMomo.slice(1), 3), { breaks: TRUE }],
    ['a list in the wrong order', ALL, shown(withMomo.toReversed(), 3), { breaks: TRUE }],
    ['a list that is cut short', { ...ALL, limit: 3 }, shown(FIRST.slice(0, 2), 3), { breaks: TRUE }],
    ['another status', { kind: 'pet', id: momo.id }, shown({ ...momo, status: 'SOLD' }, 3), { breaks: TRUE }],
    ['null for a pet that is there', { kind: 'pet', id: momo.id }, shown(null, 3), { breaks: TRUE }],
    ['pets in the wrong order', { kind: 'petsById', ids: [momo.id, '77'] }, shown([null, momo], 3), { breaks: TRUE }],
    ['an id that lost digits', { kind: 'pet', id: momo.id }, shown({ ...momo, id: rounded }, 3), { breaks: TRUE }],
    ['data without an age', ALL, shown(withMomo), { breaks: TRUE }],
    ['data older than may be served', ALL, shown(FIRST, 602_000), { breaks: AGE }],
    ['data older than max-age', ALL, shown(FIRST, 3_100), { cacheControl: { maxAge: 2 }, breaks: AGE }],
    ['cached data for no-cache', ALL, shown(FIRST, 1_100), { cacheControl: { noCache: true }, breaks: AGE }],
    ['data from before an own create', ALL, shown(FIRST, 1_100), { afterWriteMs: 1_001, breaks: OWN }],
    ['data from before a create that all have heard of', ALL, shown(FIRST, 1_100), { heardWrite, breaks: HEARD }],
  ])('%s is found', (_name, field, outcome, { breaks, ...more }) => {
    expect(look(field, outcome, more).broken).toEqual([breaks]);
  });

  test.each<[FaultKind, number | undefined, object]>([
    ['redis', undefined, { broken: [], explained: [HEARD] }],
    ['frozen', 0, { broken: [], explained: [HEARD] }],
    ['frozen', 1, { broken: [HEARD] }],
    ['upstream', undefined, { broken: [HEARD] }],
  ])('from before a create elsewhere, with the fault %s of replica %s', (kind, replica, expected) => {
    const harm: Prepare = (world) => world.harm(kind, 1_200, 1_300, replica);
    expect(look(ALL, shown(FIRST, 1_100), { heardWrite }, harm)).toMatchObject(expected);
  });

  test('of another key is found', () => {
    const foreign = wire(77n, 'Foreign', 'SOLD');
    expect(look({ kind: 'pet', id: '77' }, shown(foreign, 3)).broken).toContain(APART);
  });
});

describe('creates', () => {
  const pet = { name: 'Momo', categoryId: '3', status: 'available', idempotencyKey: 'momo-1' } as const;
  const submit = (outcome: Outcome, startedMs = 2_000, name: string = pet.name) =>
    operation(startedMs, { fields: [{ kind: 'create', pet: { ...pet, name } }], outcome });
  const created = (id: bigint) => shown({ pet: { id: String(id) }, userErrors: [] });
  const [ONCE, STORED, SAME, UNKNOWN, REFUSED, WANTED] = [
    'no pet is added twice',
    'a success is in the store',
    'one key has one outcome',
    'an unknown outcome is unknown',
    'what was refused was not added',
    'what was added was wanted',
  ];
  const ID = FIRST_ID + 3n;

  /** Momo was added so often. */
  function look(times: number, operations: readonly Operation[], prepare: Prepare = () => {}) {
    const world = openWorld();
    for (let index = 0; index < times; index += 1) addMomo(world.store);
    prepare(world);
    return verdict(createWriteCheck(world.rules), operations);
  }

  test('that happened once, not at all, or whose outcome is unknown, break nothing', () => {
    expect(look(1, [submit(created(ID)), submit(created(ID), 3_000)]).broken).toEqual([]);
    expect(look(0, [submit(failed('RATE_LIMITED'))]).broken).toEqual([]);
    expect(look(1, [submit({ kind: 'lost', reason: 'cut' }), submit(failed('RATE_LIMITED'))]).broken).toEqual([]);
    const cut: Prepare = ({ harm }) => harm('upstream', 1_500, 1_900);
    expect(look(1, [submit(failed('OUTCOME_UNKNOWN'))], cut).broken).toEqual([]);
  });

  test.each<[string, number, Operation[], string[]]>([
    ['a pet that was added twice', 2, [submit(created(ID))], [ONCE]],
    ['a success that is not in the store', 0, [submit(created(ID))], [STORED]],
    ['a success with an id of another', 1, [submit(created(FIRST_ID))], [STORED]],
    ['two outcomes of one key', 2, [submit(created(ID)), submit(created(ID + 1n))], [ONCE, SAME]],
    ['an unknown outcome in a quiet time', 1, [submit(failed('OUTCOME_UNKNOWN'))], [UNKNOWN]],
    ['a refusal of what was added', 1, [submit(failed('RATE_LIMITED'))], [REFUSED]],
    ['userErrors of what was added', 1, [submit(shown({ pet: null, userErrors: [{}] }))], [REFUSED]],
    ['a pet that no client wanted', 1, [submit(failed('RATE_LIMITED'), 0, 'Neo')], [WANTED]],
  ])('%s is found', (_name, times, operations, promises) => {
    expect(look(times, operations).broken).toEqual(promises);
  });

  test('under a key that Redis has lost may be two', () => {
    const operations = [submit(created(ID)), submit(created(ID + 1n), 5_000)];
    const emptied: Prepare = ({ harm }) => harm('emptied', 4_000, 4_000);
    expect(look(2, operations, emptied)).toEqual({ broken: [], explained: [ONCE, SAME] });
  });
});

function addMomo(store: PetStore): void {
  const body = JSON.stringify({ name: 'Momo', categoryId: 3, status: 'available' });
  store.serve({ method: 'POST', path: '/pets', body });
}
