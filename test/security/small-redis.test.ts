import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { codesOf } from '../support/transports.ts';
import { RESETS, fails } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import type { EmbeddedGateway } from '../support/start-gateway.ts';
import { until } from '../support/until.ts';

const AT_ONCE = 100;
const KEYS = 600;
/** Documents of others. They leave 1 MB. */
const OTHERS_MB = 13;
const CREATE = `mutation ($key: String!) {
  createPet(input: { name: "Momo", categoryId: 3, idempotencyKey: $key }) { pet { id } userErrors { code } }
}`;
const PETS = '{ pets { id } }';
/** An upstream that knows the key would send them; a firewall may send anything. */
const LIMITS = { limit: 60, remaining: 59, reset: 4_000_000_000 };
const answers = (status: number, more: Fault = {}): Fault => fails(status, { told: LIMITS, ...more });

/** What a pet API in trouble, or its firewall, answers to any key. */
const ANSWERS: [string, Fault][] = [
  ['503', answers(503)],
  ['resets', RESETS],
  ['a page as 201', answers(201, { body: '<html>' })],
  ['400 before it checks the key', answers(400)],
  ['403', answers(403)],
  ['404 before it checks the key', answers(404)],
  ['429 for a day', answers(429, { told: { ...LIMITS, retryAfterMs: 86_400_000 } })],
];

describe.skipIf(!redisIsHere)('a Redis of 16 MB while the pet API answers made-up keys', () => {
  let redis: RedisServer;
  let gateway: EmbeddedGateway;
  let creates = 0;

  beforeAll(async () => {
    redis = await startRedis({ settings: { maxmemory: '16mb' } });
    for (let mb = 0; mb < OTHERS_MB; mb += 1) await redis.command('SET', `others-${mb}`, 'x'.repeat(1_000_000));
    gateway = await startEmbedded({ redisUrl: redis.url, upstreamTimeoutMs: 2_000, maxWaitMs: 2_000 });
    // On a busy machine the first contact with Redis may time out.
    await until(async () => codesOf(await ask(PETS, 'demo-pro')).length === 0);
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await redis.close();
  });

  async function ask(document: string, apiKey: string, key = `key-${(creates += 1)}`) {
    const variables = document === CREATE ? { key } : {};
    return gateway.execute({ document, apiKey, variables, cacheControl: 'no-cache' });
  }

  /** Creates and reads with many keys that nobody has. Returns the error codes. */
  async function flood(name: string, keys = KEYS): Promise<Set<string>> {
    const codes = new Set<string>();
    for (let sent = 0; sent < keys; sent += AT_ONCE) {
      const some = Array.from({ length: AT_ONCE }, (_, index) =>
        index % 2 ? ask(PETS, `${name}-read-${sent + index}`) : ask(CREATE, `${name}-${sent + index}`, 'one'),
      );
      for (const code of (await Promise.all(some)).flatMap(codesOf)) codes.add(code);
    }
    return codes;
  }

  const ofKey = (name: string) => (call: { readonly key: string }) => call.key.startsWith(name);
  const failFor = (name: string, fault: Fault) =>
    (gateway.petApi.fault = (call) => (ofKey(name)(call) ? fault : undefined));

  test.each(ANSWERS)('with %s keeps room for the creates of a proven key', async (answer, fault) => {
    const name = `made-up-${answer.replaceAll(/\W/g, '-')}`;
    failFor(name, fault);
    await flood(name);
    await until(async () => codesOf(await ask(CREATE, 'demo-pro')).length === 0);

    gateway.petApi.fault = fails();
    await until(async () => codesOf(await ask(CREATE, 'demo-pro'))[0] === 'OUTCOME_UNKNOWN');

    gateway.petApi.fault = undefined;
    await until(async () => codesOf(await ask(CREATE, 'demo-pro')).length === 0);
    expect(await redis.command('INFO', 'errorstats')).not.toContain('OOM');
  });

  test('with 503 replays the latest of what made-up keys left', async () => {
    failFor('made-up', answers(503));
    expect(await flood('made-up-more', AT_ONCE)).toContain('OUTCOME_UNKNOWN');
    const calls = gateway.petApi.log.length;
    expect(codesOf(await ask(CREATE, `made-up-more-${AT_ONCE - 2}`, 'one'))).toEqual(['OUTCOME_UNKNOWN']);
    expect(gateway.petApi.log).toHaveLength(calls);
  });

  test('lets a new key create at once', async () => {
    expect(codesOf(await ask(CREATE, 'demo-business'))).toEqual([]);
  });
});
