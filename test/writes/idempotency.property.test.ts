import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { Gateway } from '../../src/index.ts';
import { FORBIDS, RESETS, fails, inTurn, slow } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { chooseSeed } from '../support/seed.ts';
import { PET_API_URL, createTestPetApi } from '../support/start-gateway.ts';

const TIMEOUT_MS = 80;
const FATES: (Fault | undefined)[] = [
  undefined,
  undefined,
  slow(40),
  RESETS,
  { ...RESETS, isCarriedOut: false },
  slow(2 * TIMEOUT_MS),
  fails(500, slow(2 * TIMEOUT_MS)),
  fails(500, { isCarriedOut: true }),
  fails(500),
  FORBIDS,
  { body: '{"id":' },
];

/** One client, which submits one create again and again. */
const client = fc.record({
  apiKey: fc.constantFrom('demo-pro', 'demo-business'),
  key: fc.constantFrom('1', '2'),
  name: fc.constantFrom('Ada', 'Ada', 'Ada', 'Balu'),
  submits: fc.array(
    fc.record({
      afterMs: fc.nat(60),
      replica: fc.nat(1),
      waitMs: fc.constantFrom(0, 500, 500),
      abortAfterMs: fc.constantFrom(undefined, undefined, 0, 10, 50),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});
const scenario = fc.record({
  fates: fc.array(fc.constantFrom(...FATES), { minLength: 1, maxLength: 8 }),
  clients: fc.array(client, { minLength: 1, maxLength: 6 }),
});
/** Another submit may get another one of these. */
const NO_OUTCOME = /^(?:left|BAD_USER_INPUT|FORBIDDEN|IDEMPOTENCY_UNAVAILABLE|OUTCOME_PENDING|RATE_LIMITED)$/;

describe.each([
  ['one process', false],
  ['two replicas with Redis', true],
])('over %s', (_name, isShared) => {
  let redis: RedisServer;
  beforeAll(async () => {
    if (isShared && redisIsHere) redis = await startRedis();
  });
  afterAll(() => redis?.close());

  test.skipIf(isShared && !redisIsHere)(
    'one idempotency key creates one pet at most, and all its submits have one outcome',
    async () => {
      await fc.assert(
        fc.asyncProperty(scenario, async ({ fates, clients }) => {
          await redis?.command('FLUSHALL');
          const petApi = createTestPetApi({ pets: [] });
          petApi.fault = inTurn(...fates);
          const options = { petApiUrl: PET_API_URL, upstreamTimeoutMs: TIMEOUT_MS, plan: 'business' as const };
          const gateways = Array.from({ length: isShared ? 2 : 1 }, () =>
            createGateway({
              ...options,
              dispatcher: petApi.connect(),
              ...(isShared && { redisUrl: redis.url }),
            }),
          );
          await Promise.all(gateways.map(({ ready }) => ready()));
          const outcomes = new Map<string, Set<string>>();
          await Promise.all(clients.map(run));
          petApi.fault = undefined;
          await Promise.all(clients.map((one) => submit(one, 0, { waitMs: 2_000 })));
          await Promise.all(gateways.map((gateway) => gateway.close()));
          const list = petApi.storeOf('').serve({ method: 'GET', path: '/pets?limit=100', body: '' });
          const stored = (JSON.parse(list.body) as { categoryId: number }[]).map(({ categoryId }) => categoryId);
          // Each category is of one create.
          expect(stored).toEqual([...new Set(stored)]);
          expect([...outcomes].filter(([, seen]) => seen.size > 1)).toEqual([]);

          async function run(one: (typeof clients)[number]): Promise<void> {
            for (const { afterMs, replica, waitMs, abortAfterMs } of one.submits) {
              await sleep(afterMs);
              const signal = abortAfterMs === undefined ? null : AbortSignal.timeout(abortAfterMs);
              await submit(one, replica, { waitMs, signal });
            }
          }

          async function submit(
            { apiKey, key, name }: (typeof clients)[number],
            replica: number,
            limits: { waitMs: number; signal?: AbortSignal | null },
          ): Promise<void> {
            const creation = `${apiKey} ${key}`;
            // Pets of one create have one category.
            const categoryId = String(creation.length * 10 + Number(key));
            const document = `mutation { createPet(input: { name: "${name}", categoryId: "${categoryId}", idempotencyKey: "${key}" }) { pet { id } } }`;
            const gateway = gateways[replica % gateways.length] as Gateway;
            const outcome = await gateway.execute({ document, apiKey, ...limits }).then(
              ({ data, errors }) => String(errors?.[0]?.extensions?.['code'] ?? (data as any).createPet.pet.id),
              () => 'left',
            );
            if (NO_OUTCOME.test(outcome)) return;
            outcomes.set(creation, (outcomes.get(creation) ?? new Set()).add(outcome));
          }
        }),
        { numRuns: isShared ? 3 : 6, seed: chooseSeed() },
      );
    },
  );
});
