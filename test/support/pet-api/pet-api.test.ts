import { describe, expect, test } from 'vitest';
import { createTestPetApi, startEmbedded, startGateway } from '../start-gateway.ts';
import {
  FORBIDS,
  HANGS,
  REFUSES,
  REJECTS_KEY,
  RESETS,
  during,
  fails,
  faultOf,
  forKey,
  inTurn,
  mixed,
  on,
  slow,
  times,
  tooMany,
} from './fault.ts';
import type { ArrivingCall, Fault, FaultRule } from './fault.ts';
import type { PetApi } from './pet-api.ts';
import { createStrictPlan } from './strict-plan.ts';

const KEY = { authorization: 'Bearer demo-business' };

/** How one call is answered: over HTTP, without a look at petql. */
async function answerOf(url: string, path: string, init: RequestInit = {}): Promise<string> {
  try {
    const response = await fetch(`${url}${path}`, { headers: KEY, ...init });
    return `${response.status} ${await response.text()}`;
  } catch (error) {
    return (error as Error).name;
  }
}

describe('over HTTP', () => {
  test.each<[string, Fault, RegExp]>([
    ['nothing', {}, /^200 \[\{"id":1,/],
    ['a status', fails(500), /^500 \{"code":"refused"/],
    ['another body', { body: '[' }, /^200 \[$/],
    ['a body that is changed', { body: (body) => body.replace('Ada', 'Eve') }, /^200 \[\{"id":1,"name":"Eve"/],
    ['a reset', RESETS, /^TypeError$/],
    ['half a body', { cutAfterBytes: 5 }, /^TypeError$/],
    ['silence', HANGS, /^TimeoutError$/],
    ['a slow answer', slow(10_000), /^TimeoutError$/],
  ])('a fault of %s shows', async (_name, fault, expected) => {
    const petApi = createTestPetApi();
    petApi.fault = fault;
    await using server = await petApi.listen();
    const signal = AbortSignal.timeout(300);
    expect(await answerOf(server.url, '/pets', { signal })).toMatch(expected);
    expect(petApi.log).toHaveLength(1);
  });

  test('a pet is stored by a call that is carried out, whatever its response says', async () => {
    const petApi = createTestPetApi();
    petApi.fault = inTurn(fails(), fails(503, { isCarriedOut: true }), RESETS);
    await using server = await petApi.listen();
    for (const name of ['failed', 'stored', 'reset']) {
      const body = JSON.stringify({ name, categoryId: 1 });
      await answerOf(server.url, '/pets', { method: 'POST', body, headers: KEY });
    }
    expect([...petApi.storeOf('demo-business').addedNames()]).toEqual(['stored', 'reset']);
  });
});

describe('in this process, petql sees', () => {
  test.each<[string, Fault, object]>([
    ['a status', fails(500), { code: 'DOWNSTREAM_SERVICE_ERROR', upstream: { status: 500 } }],
    ['a 403', FORBIDS, { code: 'FORBIDDEN' }],
    ['a rejected key', REJECTS_KEY, { code: 'UNAUTHENTICATED' }],
    ['a 429', tooMany(30), { code: 'RATE_LIMITED' }],
    ['silence', HANGS, { code: 'GATEWAY_TIMEOUT' }],
    ['half a body', { cutAfterBytes: 5 }, { code: 'DOWNSTREAM_SERVICE_ERROR' }],
    ['a reset', RESETS, { code: 'DOWNSTREAM_SERVICE_ERROR' }],
  ])('%s', async (_name, fault, expected) => {
    await using gateway = await startGateway({ gateway: { upstreamTimeoutMs: 200 } });
    gateway.petApi.fault = fault;
    const { errors } = await gateway.query('{ pets { id } }');
    expect(errors?.map(({ extensions }) => extensions)).toMatchObject([expected]);
    expect(gateway.petApi.log.length).toBeGreaterThan(0);
  });

  test('a connection that is refused, which no log has and which costs no quota', async () => {
    await using gateway = await startEmbedded();
    gateway.petApi.fault = times(5, { ...REFUSES, delayMs: 10 });
    const apiKey = 'demo-free';
    const { errors } = await gateway.execute({ document: '{ pets { id } }', apiKey });
    expect(errors?.[0]?.message).toContain('could not reach the pet API');
    expect(gateway.petApi.log).toEqual([]);
  });
});

test('breaks off a call of an operation or a parameter that it does not know', async () => {
  await using server = await createTestPetApi().listen();
  expect(await answerOf(server.url, '/pets?limit=100&species=dog')).toBe('TypeError');
  expect(await answerOf(server.url, '/pets/1', { method: 'DELETE' })).toBe('TypeError');
});

describe('a rule', () => {
  const call = (target: string, more: Partial<ArrivingCall> = {}) => {
    const kind = /^\d/.test(target) ? 'get' : target === 'create' ? 'create' : 'list';
    return { kind, target, key: 'key', atMs: 0, ...more } as ArrivingCall;
  };
  const statuses = (rule: FaultRule, calls: readonly ArrivingCall[]) => calls.map((one) => faultOf(rule, one)?.status);

  test('meets lists, gets and creates by their kind or target, and the first one decides', () => {
    const rule = [on(['sold', '350'], fails(1)), on('get', fails(2)), on('list', fails(3))];
    const calls = ['sold', 'all', '350', '7', 'create'].map((target) => call(target));
    expect(statuses(rule, calls)).toEqual([1, 3, 1, 2, undefined]);
  });

  test('meets calls of a key, in a time, and so many of them', () => {
    const rule = forKey('key', during(10, 20, times(2, fails(1))));
    const at = (atMs: number, key = 'key') => call('all', { atMs, key });
    const calls = [at(9), at(10, 'other'), at(10), at(19), at(19), at(20)];
    expect(statuses(rule, calls)).toEqual([undefined, undefined, 1, 1, undefined, undefined]);
  });

  test('mixes faults in turn and by share', () => {
    const calls = Array.from({ length: 1_000 }, () => call('all'));
    expect(statuses(inTurn(tooMany(), fails(), undefined), calls.slice(0, 4))).toEqual([429, 503, undefined, 429]);
    const met = Object.groupBy(
      statuses(
        mixed([
          [0.5, tooMany()],
          [0.3, fails()],
        ]),
        calls,
      ),
      String,
    );
    expect(met['429']?.length).toBeCloseTo(500, -2);
    expect(met['503']?.length).toBeCloseTo(300, -2);
    expect(met['undefined']?.length).toBeCloseTo(200, -2);
  });

  test.each(['all', 'available', 'sold', 'create', '350'])(
    "sees the target of petql's own call: %s",
    async (target) => {
      await using gateway = await startEmbedded();
      const documents: Record<string, string> = {
        all: '{ pets { id } }',
        available: '{ pets(status: AVAILABLE) { id } }',
        sold: '{ pets(status: SOLD) { id } }',
        create: 'mutation { createPet(input: { name: "Eve", categoryId: 1 }) { pet { id } } }',
        350: '{ pet(id: 350) { id } }',
      };
      await gateway.execute({ document: documents[target] ?? '', apiKey: 'demo-free' });
      expect(targetsOf(gateway.petApi)).toContain(target);
    },
  );
});

test('an upstream that counts late lets too many pass, and then tells what they were', () => {
  const plan = createStrictPlan({ perMinute: 2, perDay: 9, windows: 'fixed', tells: 'minute', countsLateMs: 100 });
  const statuses = [0, 10, 20, 30, 150].map((atMs) => plan.arrive(60_000 + atMs).status);
  expect(statuses).toEqual([200, 200, 200, 200, 429]);
  expect(plan.arrivals.map(({ headers }) => headers.remaining)).toEqual([2, 2, 2, 2, 0]);
});

function targetsOf({ log }: PetApi): string[] {
  return log.map(({ target }) => target);
}
