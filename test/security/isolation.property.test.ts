import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import { REJECTS_KEY, RESETS, tooMany } from '../support/pet-api/fault.ts';
import type { FaultRule } from '../support/pet-api/fault.ts';
import { createPetApi } from '../support/pet-api/pet-api.ts';
import type { PetApi } from '../support/pet-api/pet-api.ts';
import { createPetStore } from '../support/pet-api/pet-store.ts';
import { serve } from '../support/serve.ts';
import { PET_API_URL, graphqlRequest } from '../support/start-gateway.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { chooseSeed } from '../support/seed.ts';

/** Keys that careless code confuses: by their beginning, by case, by separators. */
const KEYS = ['k', 'K', 'k:one', 'k%3Aone', `${'k'.repeat(40)}1`, `${'k'.repeat(40)}2`, '__proto__', 'constructor'];
const IDEMPOTENCY_KEYS = ['two', 'one:two', '__proto__'];

/** That one operation here can cost. */
const MOST_CALLS = 4;
/** Waits of a minute's window are the same for all keys. */
const LONGEST_WINDOW_S = 61;

/** Where the key comes from. */
const MODES = ['header', 'function', 'execute', 'server'] as const;
type Mode = (typeof MODES)[number];
const RUNS: Readonly<Record<Mode, { readonly memory: number; readonly redis: number }>> = {
  header: { memory: 4, redis: 3 },
  function: { memory: 2, redis: 1 },
  execute: { memory: 2, redis: 1 },
  server: { memory: 2, redis: 1 },
};

type FaultName = 'refused' | 'reset' | 'too many';

type Action =
  | { readonly kind: 'budget' | 'get' | 'list' }
  | { readonly kind: 'create'; readonly submit: number | undefined; readonly input: number }
  | { readonly kind: 'fault'; readonly fault: FaultName };

interface Step {
  readonly key: number;
  readonly replica: number;
  readonly action: Action;
  readonly cacheControl: string | undefined;
}

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('list' as const, 'get' as const, 'budget' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      submit: fc.constantFrom(undefined, 0, 1, 2),
      input: fc.nat(1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      fault: fc.constantFrom('too many' as const, 'refused' as const, 'reset' as const),
    }),
  },
);

/** Steps of one round run at the same time. */
const rounds = fc.array(
  fc.array(
    fc.record<Step>({
      key: fc.nat(KEYS.length - 1),
      replica: fc.nat(1),
      action,
      cacheControl: fc.constantFrom(undefined, 'no-cache', 'only-if-cached'),
    }),
    { minLength: 1, maxLength: 12 },
  ),
  { minLength: 1, maxLength: 6 },
);

/** Tells apart what belongs to each key. */
function markOf(index: number) {
  return {
    /** In every name. */
    name: `<${index}>`,
    /** Ids begin after it, and are fewer than a thousand. */
    idsFrom: 1_000 * (index + 1),
    /** No plan that is known has it. */
    perMinute: 2_001 + index,
    retryAfterS: 100 * (index + 1),
  };
}

/** A pet API where each key sees pets, a plan and waits that no other one has. */
function createMarkedPetApi(): PetApi {
  const stores = new Map(
    KEYS.map((key, index) => {
      const { name, idsFrom } = markOf(index);
      const pet = { name: `Pet of ${name}`, categoryId: '1', status: 'sold' } as const;
      return [key, createPetStore({ pets: [pet, pet, pet], firstId: BigInt(idsFrom + 1) })];
    }),
  );
  return createPetApi({
    storeOf: (key) => stores.get(key) ?? expect.unreachable(),
    planOf(key) {
      const { perMinute } = markOf(KEYS.indexOf(key));
      return stores.has(key) ? { perMinute, perDay: Infinity, windows: 'fixed', tells: 'minute' } : undefined;
    },
  });
}

function faultOf(key: number, name: FaultName): FaultRule {
  return {
    refused: REJECTS_KEY,
    reset: { ...RESETS, isCarriedOut: false },
    'too many': tooMany(markOf(key).retryAfterS),
  }[name];
}

let redis: RedisServer;

beforeAll(async () => {
  if (redisIsHere) redis = await startRedis();
});
afterAll(() => redis?.close());

/** Each run of the property takes a second: making a failure smaller would take minutes. */
const parameters = { seed: chooseSeed(), endOnFailure: true };

describe.each(MODES)('where the key comes from: %s', (mode) => {
  test('nothing of one key is ever seen by another', async () => {
    await fc.assert(isolation(mode, {}), { numRuns: RUNS[mode].memory, ...parameters });
  });

  test.runIf(redisIsHere)('nor on another replica that shares a Redis', async () => {
    await fc.assert(isolation(mode, { redisUrl: redis.url }), { numRuns: RUNS[mode].redis, ...parameters });
  });
});

function isolation(mode: Mode, options: Partial<GatewayOptions>) {
  return fc.asyncProperty(rounds, async (all) => {
    const petApi = createMarkedPetApi();
    /** What the next call of each key meets. */
    const faults = new Map<string, FaultRule>();
    petApi.fault = ({ key }) => {
      const fault = faults.get(key);
      faults.delete(key);
      return fault;
    };
    if (options.redisUrl !== undefined) await redis.command('FLUSHALL');
    const gateways = [0, 1].map(() =>
      createGateway({
        petApiUrl: PET_API_URL,
        dispatcher: petApi.connect(),
        keySecret: 'the secret of all replicas',
        maxWaitMs: 1_000,
        maxAgeMs: 50,
        allowClientCacheControl: true,
        admin: true,
        ...options,
        ...serverKey(mode),
      }),
    ) as [Gateway, Gateway];
    const replicas = options.redisUrl === undefined ? [gateways[0]] : gateways;
    const met = new Map<number, Set<FaultName>>();
    const submits = new Map<string, Set<number>>();
    const asked = new Map<number, number>();
    try {
      for (const round of all) {
        for (const { key, action: one } of round) note(keyUsed(mode, key), one);
        await Promise.all(
          round.map(async ({ key, replica, action: one, cacheControl }) => {
            if (one.kind === 'fault') return;
            const gateway = replicas[replica % replicas.length] as Gateway;
            const answer = await ask(gateway, { mode, key, cacheControl }, queryOf(keyUsed(mode, key), one));
            expectOwn(keyUsed(mode, key), one, answer);
          }),
        );
      }
      expectOwnCalls(petApi);
      for (const gateway of replicas) await expectNoName(gateway);
    } finally {
      await Promise.all(gateways.map((gateway) => gateway.close()));
    }

    function note(key: number, one: Action): void {
      asked.set(key, (asked.get(key) ?? 0) + 1);
      if (one.kind === 'fault') {
        faults.set(KEYS[key] ?? '', faultOf(key, one.fault));
        met.set(key, (met.get(key) ?? new Set<FaultName>()).add(one.fault));
      } else if (one.kind === 'create') {
        const name = `${key} ${one.submit}`;
        submits.set(name, (submits.get(name) ?? new Set<number>()).add(one.input));
      }
    }

    function expectOwn(key: number, one: Action, { body, headers }: Answer): void {
      const mark = markOf(key);
      const text = JSON.stringify(body.data ?? null);
      for (const [other] of KEYS.entries()) if (other !== key) expect(text).not.toContain(markOf(other).name);
      for (const [, id] of text.matchAll(/"id":"(\d+)"/g)) {
        expect(Math.floor(Number(id) / 1_000) * 1_000).toBe(mark.idsFrom);
      }
      // Before the upstream shows a plan, petql takes it for Free's. A 429 may teach it a limit below that.
      const limits = new Set([mark.perMinute, 60, 1_000]);
      const isOwnLimit = (limit: number) => limits.has(limit) || (limit < 60 && met.get(key)?.has('too many') === true);
      const rateLimit = body.data?.['rateLimit'];
      for (const { window, limit, used } of rateLimit?.windows ?? []) {
        if (window === 'MINUTE') expect(limit).toSatisfy(isOwnLimit);
        // Of calls that are on their way, too.
        expect(used).toBeLessThanOrEqual(MOST_CALLS * (asked.get(key) ?? 0));
      }
      const told = headers?.get('x-ratelimit-limit');
      if (told) expect(Number(told)).toSatisfy(isOwnLimit);
      const own = met.get(key) ?? new Set();
      if (rateLimit?.pausedUntil) {
        expect(own).toContain('too many');
        const inS = (Date.parse(rateLimit.pausedUntil) - Date.now()) / 1_000;
        expect(Math.abs(inS - mark.retryAfterS)).toBeLessThan(50);
      }
      const retryAfter = headers?.get('retry-after');
      const allowed = new Set([
        'NOT_CACHED',
        ...(own.has('too many') ? ['FORBIDDEN', 'UNAUTHENTICATED'] : []),
        ...(own.has('refused') ? ['UNAUTHENTICATED'] : []),
        ...(own.has('reset') ? ['DOWNSTREAM_SERVICE_ERROR', 'OUTCOME_UNKNOWN', 'OUTCOME_PENDING'] : []),
        // What a fault leaves open is waited for.
        ...(own.size > 0 ? ['OUTCOME_PENDING', 'RATE_LIMITED'] : []),
      ]);
      if (one.kind === 'create' && one.submit !== undefined) {
        // Only the caller's own submits can be in each other's way.
        if ((submits.get(`${key} ${one.submit}`)?.size ?? 0) > 1) allowed.add('BAD_USER_INPUT');
      }
      for (const { extensions } of body.errors ?? []) {
        expect(allowed).toContain(extensions.code);
        if (extensions.code === 'RATE_LIMITED' && Number(retryAfter) > LONGEST_WINDOW_S) {
          expect(Math.abs(Number(retryAfter) - mark.retryAfterS)).toBeLessThan(50);
        }
      }
      const created = body.data?.['createPet']?.pet;
      if (created && one.kind === 'create') expect(created.name).toBe(nameOf(key, one));
    }
  });
}

/** Callers without a server's key are told from each other by what they bring. */
function serverKey(mode: Mode): Pick<GatewayOptions, 'petApiKey'> | object {
  if (mode === 'server') return { petApiKey: KEYS[0] };
  return mode === 'function' ? { petApiKey: ({ headers }: Request) => headers.get('x-visitor') ?? undefined } : {};
}

function keyUsed(mode: Mode, key: number): number {
  return mode === 'server' ? 0 : key;
}

interface Answer {
  readonly body: {
    readonly data?: Record<string, any> | null;
    readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
  };
  readonly headers?: Headers;
}

async function ask(
  gateway: Gateway,
  { mode, key, cacheControl }: { mode: Mode; key: number; cacheControl: string | undefined },
  query: string,
): Promise<Answer> {
  const apiKey = KEYS[key] ?? '';
  if (mode === 'execute') return { body: await gateway.execute({ document: query, apiKey, cacheControl }) };
  const response = await gateway.fetch(
    graphqlRequest(
      { query },
      {
        // With a function, petql reads no Authorization header.
        authorization: `Bearer ${mode === 'function' ? KEYS[(key + 1) % KEYS.length] : apiKey}`,
        'x-visitor': apiKey,
        ...(cacheControl === undefined ? {} : { 'cache-control': cacheControl }),
      },
    ),
  );
  return { body: (await response.json()) as Answer['body'], headers: response.headers };
}

function queryOf(key: number, one: Action): string {
  const { idsFrom } = markOf(key);
  switch (one.kind) {
    case 'list':
      return '{ pets { id name } sold: pets(status: SOLD, limit: 2) { id name } }';
    case 'get':
      // Its own pet, and one that another key has.
      return `{ pet(id: "${idsFrom + 1}") { id name } other: pet(id: "${idsFrom + 1_001}") { id name } }`;
    case 'create': {
      const given = one.submit === undefined ? '' : `, idempotencyKey: "${IDEMPOTENCY_KEYS[one.submit]}"`;
      return `mutation { createPet(input: { name: "${nameOf(key, one)}", categoryId: "1"${given} }) { pet { id name } userErrors { code } } }`;
    }
    default:
      return '{ rateLimit { plan pausedUntil windows { window limit used } } }';
  }
}

/** The same text for each key, with its mark. */
function nameOf(key: number, { submit, input }: Extract<Action, { kind: 'create' }>): string {
  return `Created ${submit} ${input} ${markOf(key).name}`;
}

/** What was sent with a key is what its own caller wants. */
function expectOwnCalls({ log }: PetApi): void {
  expect(log.filter(({ key }) => !KEYS.includes(key))).toEqual([]);
  for (const { key, body } of log.filter(({ kind }) => kind === 'create')) {
    expect(body).toContain(markOf(KEYS.indexOf(key)).name);
  }
}

/** Metrics name no caller, and nothing of one. */
async function expectNoName({ admin }: Gateway): Promise<void> {
  await using served = await serve(admin ?? expect.unreachable());
  const metrics = await (await fetch(`${served.origin}/metrics`)).text();
  const labels = [...metrics.matchAll(/="([^"]*)"/g)].map(([, label]) => label);
  for (const [index, key] of KEYS.entries()) {
    expect(labels).not.toContain(key);
    expect(labels.filter((label) => label?.includes(markOf(index).name))).toEqual([]);
  }
}
