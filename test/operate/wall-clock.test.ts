import { afterEach, describe, expect, test, vi } from 'vitest';
import { HANGS, slow, tooMany } from '../support/pet-api/fault.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import type { EmbeddedGateway } from '../support/start-gateway.ts';

const { now: realNow } = Date;
let aheadMs = 0;

afterEach(() => {
  vi.restoreAllMocks();
  aheadMs = 0;
});

/** Less than the wait that a request allows, and far less than any move of the clock. */
const SOON_MS = 4_000;
/** Of a Retry-After of a second, also after a second 429. */
const MAX_PAUSE_MS = 20_000;
const HOUR_MS = 3_600_000;
const LIST = '{ pets { id } }';
const CREATE = 'mutation { createPet(input: { name: "Ada", categoryId: 1, idempotencyKey: "1" }) { pet { id } } }';
/** Pets that no list shows. */
const GETS = `{ ${Array.from({ length: 60 }, (_, index) => `p${index}: pet(id: "${index + 150}") { id }`).join(' ')} }`;

/** Each is where the wall clock stands beside the right time, one after the other. */
const MOVES: [name: string, aheadMs: readonly number[]][] = [
  ['set back by 20 s', [-20_000]],
  ['set back by an hour', [-HOUR_MS]],
  ['set ahead by 20 s', [20_000]],
  ['set ahead by an hour', [HOUR_MS]],
  ['set back and forth', [HOUR_MS, 0, -HOUR_MS, 20_000, -20_000, 0]],
];

async function start(): Promise<EmbeddedGateway> {
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + aheadMs);
  const startMs = realNow() - performance.now();
  const gateway = await startEmbedded(
    { maxWaitMs: 5_000, upstreamTimeoutMs: 500 },
    { keys: { key: { perMinute: 600, perDay: 20_000 } }, now: () => startMs + performance.now() },
  );
  for (let call = 0; call < 10; call += 1) await ask(gateway, LIST);
  return gateway;
}

/** How long an operation took, and the codes of its errors. */
async function ask(gateway: EmbeddedGateway, document: string, cacheControl = 'no-cache') {
  const startedMs = performance.now();
  const { errors = [] } = await gateway.execute({ document, apiKey: 'key', cacheControl });
  const codes = errors.map((error) => error.extensions.code);
  const retryAfterMs = errors[0]?.extensions.retryAfterMs ?? 0;
  return { tookMs: performance.now() - startedMs, codes, retryAfterMs };
}

describe.each(MOVES)('a wall clock that is %s', (_name, moves) => {
  test('holds no read, no create, and no calls that wait for others', async () => {
    await using gateway = await start();
    for (const move of moves) {
      aheadMs = move;
      for (const document of [LIST, CREATE, GETS]) {
        const { tookMs, codes } = await ask(gateway, document);
        expect(codes).toEqual([]);
        expect(tookMs).toBeLessThan(SOON_MS);
      }
    }
  });

  test('holds no calls that are in flight or in the line', async () => {
    await using gateway = await start();
    gateway.petApi.fault = slow(100);
    const asked = [ask(gateway, GETS), ask(gateway, LIST), ask(gateway, CREATE)];
    for (const move of moves) {
      aheadMs = move;
      await new Promise((resolve) => void setTimeout(resolve, 50));
    }
    for (const { tookMs, codes } of await Promise.all(asked)) {
      expect(codes).toEqual([]);
      expect(tookMs).toBeLessThan(SOON_MS + 1_000);
    }
  });

  test('makes no pause after a 429 longer, and holds no stale data of an API that hangs', async () => {
    await using gateway = await start();
    gateway.petApi.fault = HANGS;
    for (const move of moves) {
      aheadMs = move;
      const stale = await ask(gateway, LIST, 'max-age=0, max-stale=600');
      expect(stale.codes).toEqual([]);
      expect(stale.tookMs).toBeLessThan(SOON_MS);
    }

    gateway.petApi.fault = tooMany(1);
    for (const move of [0, ...moves]) {
      aheadMs = move;
      expect((await ask(gateway, LIST)).retryAfterMs).toBeLessThan(MAX_PAUSE_MS);
    }
  });
});
