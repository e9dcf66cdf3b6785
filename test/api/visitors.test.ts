import { describe, expect, test } from 'vitest';
import type { GatewayOptions } from '../../src/index.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { QueryAnswer, TestGateway } from '../support/start-gateway.ts';

const KEY = 'the-server';
const CREATE = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } } }';
const QUOTA = '{ rateLimit { plan windows { window limit used remaining } } }';

/** A gateway with a server-side key, of 20 calls a minute unless it says more. */
function start(options: Partial<GatewayOptions> = {}, perMinute = 20): Promise<TestGateway> {
  // No minute of the pet API ends during a test.
  const aheadMs = Date.UTC(2026, 10, 21, 9, 41, 5) - Date.now();
  return startGateway({
    petApi: { keys: { [KEY]: { perMinute, perDay: 1_000 } }, now: () => Date.now() + aheadMs },
    gateway: { petApiKey: KEY, plan: `${perMinute}/1000`, visitorHeader: 'X-Forwarded-For', ...options },
  });
}

function ask(
  { query }: TestGateway,
  document: string,
  visitor?: string,
  variables: Record<string, unknown> = {},
): Promise<QueryAnswer> {
  const headers = { authorization: null, ...(visitor !== undefined && { 'x-forwarded-for': visitor }) };
  return query(document, { headers, variables });
}

let lastId = 1_000_000;

/** Reads pets that nobody has read before: each costs a call, but the first two may cost a list beside. */
function readNew(gateway: TestGateway, count: number, visitor?: string): Promise<QueryAnswer> {
  const ids = Array.from({ length: count }, () => String((lastId += 1)));
  return ask(gateway, 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', visitor, { ids });
}

function create(gateway: TestGateway, visitor: string, idempotencyKey?: string): Promise<QueryAnswer> {
  return ask(gateway, CREATE, visitor, { input: { name: 'Momo', categoryId: '3', idempotencyKey } });
}

async function minuteOf(gateway: TestGateway, visitor?: string) {
  const { data } = await ask(gateway, QUOTA, visitor);
  const [{ limit, used, remaining }] = (data as any).rateLimit.windows;
  return { limit, used, remaining };
}

describe('a visitor is named by', () => {
  test.each([
    ['the last entry of the header', '192.0.2.1', '198.51.100.7, 192.0.2.1'],
    ['its address without the port', '192.0.2.1:4711', '192.0.2.1:815'],
    ['its IPv4 address in IPv6', '192.0.2.1', '::ffff:192.0.2.1'],
    ['the first 64 bits of its IPv6 address', '2001:db8::1', '2001:0DB8:0:0:ffff::2'],
    ['the same in brackets, with a port and a zone', '[2001:db8:1:2:3::4]:443', '2001:db8:1:2::%eth0'],
    ['any other name', 'Ada Lovelace', ' Ada Lovelace '],
    ['nothing, where the header is empty or missing', '', undefined],
    ['nothing, where its last entry is', '192.0.2.1,', undefined],
  ])('%s', async (_by, one, other) => {
    await using gateway = await start();
    await readNew(gateway, 1, one);
    expect(await minuteOf(gateway, other)).toMatchObject({ used: gateway.petApi.log.length });
  });

  test.each([
    ['alone', 'for=192.0.2.1'],
    ['with a port, behind other entries', 'for=198.51.100.7, for="192.0.2.1:4711";proto=https;by=203.0.113.43'],
    ['with the name of a port', 'by=_gate;For = "192.0.2.1:_p-1" ; host="pets.example"'],
    ['as IPv6', 'for="[::ffff:192.0.2.1]:815"'],
    ['with commas in a text of the client', 'for=192.0.2.1;host="a,for=192.0.2.2"'],
    ['with semicolons in one', 'host="x;for=192.0.2.2";for=192.0.2.1'],
    ['with quotes in one', 'for=192.0.2.1;ext="say \\"hi\\", for=192.0.2.2"'],
    ['with an escaped character', 'for="192\\.0.2.1"'],
  ])('the address in the last entry of Forwarded (RFC 7239), %s', async (_how, forwarded) => {
    await using gateway = await start({ visitorHeader: 'Forwarded' });
    const minuteWith = async (value: string) => {
      const { data } = await gateway.query(QUOTA, { headers: { authorization: null, forwarded: value } });
      return (data as any).rateLimit.windows[0].used;
    };
    await gateway.query('{ pets { id } }', {
      headers: { authorization: null, forwarded: 'for=192.0.2.1:80;proto=http' },
    });
    expect(await Promise.all([forwarded, 'for=192.0.2.2', 'for=_hidden', 'proto=http'].map(minuteWith))).toEqual([
      1, 0, 0, 0,
    ]);
  });

  test.each([
    ['addresses', '192.0.2.1', '192.0.2.2'],
    ['entries before the last', '192.0.2.1', '192.0.2.1, 192.0.2.2'],
    ['networks', '2001:db8:0:1::1', '2001:db8:0:2::1'],
    ['names', 'Ada', 'ada'],
    ['a name and none', 'Ada', undefined],
  ])('other %s are another visitor', async (_what, one, other) => {
    await using gateway = await start();
    await readNew(gateway, 1, one);
    expect(await minuteOf(gateway, other)).toMatchObject({ used: 0 });
  });

  test('the option of execute, which needs no setting', async () => {
    await using gateway = await start({ visitorHeader: undefined });
    const document = '{ pets { id } rateLimit { windows { used } } }';
    const usedBy = async (visitor: string | undefined) => {
      const { data } = await gateway.gateway.execute<any>({ document, visitor });
      return data.rateLimit.windows[0].used;
    };
    expect([await usedBy('Ada'), await usedBy('Bob'), await usedBy(undefined)]).toEqual([1, 0, 1]);
  });
});

test('without the setting, the header says nothing', async () => {
  await using gateway = await start({ visitorHeader: undefined });
  await readNew(gateway, 15, 'Ada');
  const { limit, used, remaining } = await minuteOf(gateway, 'Bob');
  expect({ limit, used, remaining }).toEqual({ limit: 20, used: gateway.petApi.log.length, remaining: 20 - used });
  expect(used).toBeGreaterThanOrEqual(15);
});

describe('a visitor that has used its share', () => {
  /** Ada has a share of 10 of 20. */
  async function useShare(options: Partial<GatewayOptions> = {}): Promise<TestGateway> {
    const gateway = await start(options);
    await readNew(gateway, 30, 'Ada');
    expect(gateway.petApi.log).toHaveLength(10);
    return gateway;
  }

  test('is told so at once, and when to retry', async () => {
    const startedMs = performance.now();
    await using gateway = await useShare();
    const { errors = [], headers } = await ask(gateway, '{ pet(id: "404404") { id } }', 'Ada');
    const [{ message, extensions } = { message: '', extensions: {} as any }] = errors;
    expect(message).toMatch(/^Your share of the quota is used, and the rest is for other visitors; retry in \d+ s\.$/);
    expect(extensions).toMatchObject({ code: 'RATE_LIMITED', window: 'MINUTE' });
    expect(extensions.retryAfterMs).toBeGreaterThanOrEqual(1_000);
    // A minute, half a second, the rest of a slot, and a second of spread; and a call counts from its response.
    const tookMs = performance.now() - startedMs;
    expect(extensions.retryAfterMs).toBeLessThanOrEqual(62_500 + tookMs);
    expect(Number(headers.get('retry-after'))).toBe(Math.ceil(extensions.retryAfterMs / 1_000));
    expect(gateway.petApi.log).toHaveLength(10);
  });

  test('leaves the rest to others', async () => {
    await using gateway = await useShare();
    expect((await readNew(gateway, 3, 'Bob')).errors).toBeUndefined();
    expect((await create(gateway, 'Cleo')).errors).toBeUndefined();
    expect(gateway.petApi.log).toHaveLength(14);
  });

  test('gets what is cached, fresh or stale, and the response of a call that another one pays for', async () => {
    await using gateway = await useShare({ maxAgeMs: 1 });
    const list = (visitor: string) => ask(gateway, '{ pets(status: SOLD) { id } }', visitor);
    const [ofBob, ofAda] = await Promise.all([list('Bob'), list('Ada')]);
    expect(gateway.petApi.log).toHaveLength(11);
    expect(ofAda.data).toEqual(ofBob.data);
    await new Promise((resolve) => void setTimeout(resolve, 10));
    const stale = await list('Ada');
    expect(stale.data).toEqual(ofBob.data);
    expect(stale.extensions?.['petql']).toMatchObject({ upstreamCalls: 0, staleReason: 'QUOTA_EXHAUSTED' });
    expect(gateway.petApi.log).toHaveLength(11);
    expect((await list('Bob')).extensions?.['petql']).toMatchObject({ upstreamCalls: 1 });
  });

  test('lets another one pay for what both ask for at once', async () => {
    await using gateway = await useShare();
    const document = `{ pet(id: "${(lastId += 1)}") { id } }`;
    const answers = ['Ada', 'Bob'].map((visitor) => gateway.gateway.execute({ document, visitor }));
    const [ofAda, ofBob] = await Promise.all(answers);
    expect([ofAda?.errors, ofBob?.errors]).toEqual([undefined, undefined]);
    expect(ofBob?.extensions?.petql).toMatchObject({ upstreamCalls: 1 });
    expect(gateway.petApi.log).toHaveLength(11);
  });

  test('creates nothing, and stores nothing of it', async () => {
    await using gateway = await useShare();
    const { errors } = await create(gateway, 'Ada', 'momo-1');
    expect(errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED' });
    expect(gateway.petApi.log).toHaveLength(10);
    expect((await create(gateway, 'Bob', 'momo-1')).errors).toBeUndefined();
  });

  test('gets the outcome of its create again', async () => {
    await using gateway = await start();
    const first = await create(gateway, 'Ada', 'momo-1');
    await readNew(gateway, 30, 'Ada');
    expect(gateway.petApi.log).toHaveLength(10);
    const again = await create(gateway, 'Ada', 'momo-1');
    expect(again.errors).toBeUndefined();
    expect(again.data).toEqual(first.data);
    expect(gateway.petApi.log).toHaveLength(10);
  });

  test('is counted, and its name is in no log line and in no metric', async () => {
    await using gateway = await useShare({ admin: true, logLevel: 'debug' });
    await create(gateway, 'Ada', 'momo-1');
    const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text();
    expect(metrics).toMatch(/^petql_refusals_total\{kind="read",reason="visitor-share"\} 21$/m);
    expect(metrics).toMatch(/^petql_refusals_total\{kind="write",reason="visitor-share"\} 1$/m);
    const lines = JSON.stringify(gateway.logLines);
    expect(lines).toContain('"reason":"visitor-share"');
    expect(lines + metrics).not.toContain('Ada');
  });
});

describe('the quota that a visitor sees', () => {
  test('is its share, in fields and headers, and not the plan', async () => {
    await using gateway = await start();
    const { headers } = await create(gateway, 'Ada');
    // It has used 1 and leaves 19: after 9 more calls it leaves 10.
    expect(headers.get('ratelimit')).toMatch(/^"minute";r=9;t=\d+, "day";r=499;t=\d+$/);
    expect(headers.get('ratelimit-policy')).toBe('"minute";q=10;w=60, "day";q=500;w=86400');
    expect(headers.get('x-ratelimit-limit')).toBe('10');
    expect(headers.get('x-ratelimit-remaining')).toBe('9');
    const { data } = await ask(gateway, QUOTA, 'Bob');
    expect(data?.['rateLimit'].plan).toBeNull();
    expect(data?.['rateLimit'].windows).toEqual([
      { window: 'MINUTE', limit: 10, used: 0, remaining: 10 },
      { window: 'DAY', limit: 500, used: 0, remaining: 500 },
    ]);
  });

  test('is its own beside a response from the cache', async () => {
    await using gateway = await start({ maxAgeMs: 60_000 });
    const list = (visitor: string) => ask(gateway, '{ pets { id } }', visitor);
    await list('Ada');
    expect((await list('Ada')).headers.get('x-ratelimit-remaining')).toBe('9');
    expect((await list('Bob')).headers.get('x-ratelimit-remaining')).toBe('10');
    expect(gateway.petApi.log).toHaveLength(1);
  });

  test('is what a dry run counts with', async () => {
    await using gateway = await start();
    await create(gateway, 'Ada');
    const fit = async (creates: number, visitor: string) => {
      const fields = Array.from({ length: creates }, (_, n) => `c${n}: createPet(input: $input) { pet { id } }`);
      const headers = { authorization: null, 'x-forwarded-for': visitor, 'petql-dry-run': '1' };
      const variables = { input: { name: 'Momo', categoryId: '3' } };
      const document = `mutation ($input: CreatePetInput!) { ${fields.join(' ')} }`;
      const { extensions } = await gateway.query(document, { headers, variables });
      return extensions?.['petql'].dryRun;
    };
    expect(await fit(9, 'Ada')).toMatchObject({ upstreamCalls: 9, fits: true, waitMs: 0 });
    expect(await fit(10, 'Ada')).toMatchObject({ upstreamCalls: 10, fits: false, window: 'MINUTE' });
    expect(await fit(10, 'Bob')).toMatchObject({ upstreamCalls: 10, fits: true });
  });
});

test('a call that was not sent is not charged', async () => {
  await using gateway = await start();
  await create(gateway, 'Ada');
  gateway.petApi.fault = { connection: 'refused' };
  await create(gateway, 'Ada');
  await readNew(gateway, 2, 'Ada');
  gateway.petApi.fault = undefined;
  expect(await minuteOf(gateway, 'Ada')).toMatchObject({ used: 1 });
});

test('thousands of made-up visitors neither exceed the plan nor keep cached data from another one', async () => {
  await using gateway = await start({ maxAgeMs: 60_000, maxWaitMs: 0 });
  await ask(gateway, '{ pets { id } }', 'Ada');
  for (let made = 0; made < 2_000; made += 50) {
    const visitors = Array.from({ length: 50 }, (_, index) => `198.51.${made / 50}.${index}`);
    await Promise.all(visitors.map((visitor) => readNew(gateway, 1, visitor)));
    expect((await ask(gateway, '{ pets { id } }', 'Ada')).data?.['pets']).toHaveLength(20);
  }
  expect(gateway.petApi.log.length).toBeLessThanOrEqual(20);
  expect(gateway.petApi.log.filter(({ status }) => status === 429)).toEqual([]);
});
