import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { API_CLOSES, API_OPENS, GETS_CLOSE, HIDDEN, LIST, LIST_CLOSES, LIST_OPENS } from '../support/failing-world.ts';
import { NO_CACHE, SOLD, ask, createFailingWorld, linesOf, pet, startProven, work } from '../support/failing-world.ts';
import { HANGS, REFUSES, RESETS, box, fails, on } from '../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../support/pet-api/fault.ts';
import { chooseCases } from '../support/seed.ts';
import { MINUTE_MS } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

// What the pet API itself says of its failure reaches who can act on it: a client, by code and message; an operator, by the log.

const FAIL = 'calls to the pet API fail';
const AGAIN = 'calls to the pet API succeed again';
const UNKNOWN = 'a write had no clear response: it may have happened';
const CREATE =
  'mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id } userErrors { code message } } }';

const WORDS = { code: 'closed_for_today', message: 'We are back at 14:00 UTC' };
/** A failure with the Error body. */
const says = (status: number, message = WORDS.message): Fault => ({
  status,
  body: JSON.stringify({ ...WORDS, message, status }),
});

async function start(options: Parameters<typeof startProven>[1] = {}, keys?: readonly string[]) {
  const world = await createFailingWorld();
  const petql = await startProven(world, { upstreamTimeoutMs: 1_000, admin: true, ...options }, keys);
  return { world, petql, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

const FAILURES: [what: string, fault: FaultRule][] = [
  ...[400, 404, 405, 408, 409, 410, 418, 422, 425, 500, 501, 502, 503].flatMap((status): [string, Fault][] => [
    [`${status} with the Error body`, says(status)],
    [`${status} of nginx`, box(status)],
    [`${status} with an empty body`, { status, body: '' }],
    [`${status} whose body breaks off`, { ...says(status), cutAfterBytes: 9 }],
  ]),
  ['204', { status: 204, body: '' }],
  ['307', { status: 307, body: '', headers: { location: '/v1/pets/' } }],
  ['403 of a firewall', box(403)],
  ['a page', box(200)],
  ['a cut body', { cutAfterBytes: 9 }],
  ['an object', { body: '{}' }],
  ['a wrong type', { body: '[{"id":"1"}]' }],
  ['gzip that is none', { headers: { 'content-encoding': 'gzip' } }],
  ['silence', HANGS],
  ['a reset', RESETS],
  ['no connection', REFUSES],
];

test.each(chooseCases(FAILURES, 3))(
  'a list that fails by %s is a line with a code, a problem in words or the Error',
  async (_what, fault) => {
    await using given = await start();
    given.world.petApi.fault = on('list', fault);
    await ask(given.world, given.petql, LIST, NO_CACHE);
    const lines = linesOf(given.petql, FAIL);
    expect(lines).toMatchObject([{ level: 40, reason: expect.any(String) }]);
    const { code, problem, error } = lines[0] ?? {};
    expect([code, problem, (error as typeof WORDS | undefined)?.message].join('').length).toBeGreaterThan(8);
  },
);

describe('the words of the Error body', () => {
  test.each([
    [FAIL, on('list', says(503)), LIST],
    [API_CLOSES, says(503), LIST],
    [LIST_CLOSES, on('sold', says(500)), SOLD],
    [UNKNOWN, on('create', says(500)), CREATE],
    [UNKNOWN, on('create', says(408)), CREATE],
    ['the pet API rejects a key that it has accepted before', says(401), LIST],
    ['the pet API answered 429; the key is paused', { ...says(429), headers: { 'retry-after': '5' } }, LIST],
  ] as [string, FaultRule, string][])('are in the log line `%s`', async (msg, fault, document) => {
    await using given = await start();
    given.world.petApi.fault = fault;
    const load = work(given.world, given.petql, { durationMs: 20_000, wants: ['list', 'sold', 'pet'] });
    for (let turn = 0; turn < 10; turn += 1) {
      await ask(given.world, given.petql, document, NO_CACHE);
      await given.world.pass(1_000);
    }
    await given.world.until(load);
    expect(linesOf(given.petql, msg)[0]).toMatchObject({ level: 40, error: WORDS });
  });

  test.each([
    ['a 401', says(401), 'UNAUTHENTICATED', 401],
    ['a 403', says(403), 'FORBIDDEN', 403],
    ['a 409 of a create', on('create', says(409)), 'DOWNSTREAM_SERVICE_ERROR', 409],
    ['a 413 of a create', on('create', says(413)), 'DOWNSTREAM_SERVICE_ERROR', 413],
  ] as const)('reach the client after %s', async (_what, fault, code, status) => {
    await using given = await start({ maxStaleMs: 0 }, []);
    given.world.petApi.fault = fault;
    const { errors } = await given.world.until(given.petql.ask(CREATE));
    expect(errors).toMatchObject([{ extensions: { code, upstream: { status, code: WORDS.code } } }]);
    expect(errors?.[0]?.message).toContain(WORDS.message);
  });

  test.each([400, 422])('reach the client of a create as userErrors after a %d', async (status) => {
    await using given = await start();
    given.world.petApi.fault = on('create', says(status));
    const { data } = await given.world.until(given.petql.ask(CREATE));
    expect(data?.['createPet']).toMatchObject({ pet: null, userErrors: [WORDS] });
  });

  test('of a 5xx reach the client by the code alone: its message may be about the inside of the pet API', async () => {
    await using given = await start({ maxStaleMs: 0 });
    given.world.petApi.fault = says(503);
    const { errors } = await given.world.until(given.petql.ask(LIST, NO_CACHE));
    expect(errors).toMatchObject([{ extensions: { upstream: { status: 503, code: WORDS.code } } }]);
    expect(errors?.[0]?.message).not.toContain(WORDS.message);
  });

  test('of a 403 are in the log', async () => {
    await using given = await start();
    given.world.petApi.fault = says(403);
    const request = new Request('http://localhost/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer key', 'cache-control': 'no-cache' },
      body: JSON.stringify({ query: LIST }),
    });
    await given.world.until(given.petql.fetch(request));
    expect(linesOf(given.petql, 'the pet API forbids calls of this key')).toMatchObject([
      { level: 40, reason: expect.stringContaining(WORDS.message) },
    ]);
  });

  test.each([400, 401, 403, 409, 500])('never repeat the API key: a %d', async (status) => {
    const apiKey = 'sk-live-0123456789';
    await using world = await createFailingWorld({
      keys: { [apiKey]: { perMinute: 100, perDay: 10_000, windows: 'fixed', tells: 'minute' } },
    });
    const petql = await startProven(world, { plan: 'business', logLevel: 'debug' }, [apiKey]);
    world.petApi.fault = {
      status,
      body: JSON.stringify({ code: apiKey, message: `The key ${apiKey} may not.`, status }),
    };
    const answers = [];
    for (const document of [CREATE, LIST, SOLD, pet(HIDDEN)]) {
      answers.push(await world.until(petql.ask(document, { key: apiKey, ...NO_CACHE })));
    }
    expect(JSON.stringify([answers, petql.logLines])).not.toContain(apiKey);
    expect(JSON.stringify([answers, petql.logLines])).toContain('The key … may not.');
  });
});

interface Given {
  readonly world: World;
  readonly petql: Petql;
}

/** Lets clients of all keys work, while calls meet a fault. */
async function failFor({ world, petql }: Given, fault: FaultRule, minutes = 1): Promise<void> {
  world.petApi.fault = fault;
  await world.until(work(world, petql, { durationMs: minutes * MINUTE_MS, wants: ['list', 'sold', 'pet', 'create'] }));
}

const expectLines = ({ petql }: Given, ...messages: string[]) =>
  expect(linesOf(petql).map(({ msg }) => msg)).toEqual(expect.arrayContaining(messages));
const expectMetric = async ({ petql }: Given, pattern: RegExp) => expect(await petql.page('/metrics')).toMatch(pattern);
const codeOf = async ({ world, petql }: Given, document: string) => ask(world, petql, document, NO_CACHE);

/** What shows each thing that two sections of the page say is seen, by its first words. */
const SEEN: Readonly<Record<string, (given: Given) => Promise<void>>> = {
  async 'the log line `the pet API fails, and petql makes one call'(given) {
    await failFor(given, fails(503), 2);
    await failFor(given, undefined);
    expectLines(given, API_CLOSES, API_OPENS);
  },
  async 'the log line `a list of the pet API fails'(given) {
    await failFor(given, on('sold', fails(503)));
    await failFor(given, undefined);
    expectLines(given, LIST_CLOSES, LIST_OPENS);
  },
  async '`petql_closed_operations`, by `operation`'(given) {
    await failFor(given, on('sold', fails(503)));
    await expectMetric(given, /^petql_closed_operations\{.*operation="sold".*\} [1-9]/m);
    expect(JSON.parse(await given.petql.page('/health/ready')).upstream.closed).toEqual(['sold']);
    await failFor(given, fails(503), 2);
    await expectMetric(given, /^petql_closed_operations\{.*operation="api".*\} 1$/m);
  },
  async 'the log line `calls to the pet API fail`, with status, reason'(given) {
    await failFor(given, says(503));
    expect(linesOf(given.petql, FAIL)).toMatchObject([{ status: 503, reason: 'failed', error: WORDS }]);
  },
  async 'the reason `malformed`'(given) {
    await failFor(given, { headers: { 'content-encoding': 'gzip' } });
    expect(linesOf(given.petql, FAIL)).toMatchObject([{ status: 200, reason: 'miscoded' }]);
  },
  async 'a status from 301 to 308'(given) {
    await failFor(given, { status: 308, body: '', headers: { location: '/v1/pets/' } });
    const problem = expect.stringMatching(/to the path \/v1\/pets\/,.*no base URL helps/);
    expect(linesOf(given.petql, FAIL)).toMatchObject([{ status: 308, problem }]);
  },
  async 'the log line `the pet API responds with 404 below this path`'({ world }) {
    world.petApi.fault = fails(404);
    const petql = await world.start({ plan: 'business' });
    await world.until(petql.ask(LIST));
    expect(linesOf(petql)[0]?.['msg']).toMatch(/^the pet API responds with 404 below this path/);
  },
  async 'the log line `calls to the pet API succeed again`'(given) {
    await failFor(given, fails(503));
    await failFor(given, undefined, 2);
    expectLines(given, FAIL, AGAIN);
  },
  async '`DOWNSTREAM_SERVICE_ERROR` or `GATEWAY_TIMEOUT`'(given) {
    given.world.petApi.fault = on('701', fails(500));
    expect(await codeOf(given, pet('701'))).toBe('DOWNSTREAM_SERVICE_ERROR');
    given.world.petApi.fault = on('702', HANGS);
    expect(await codeOf(given, pet('702'))).toBe('GATEWAY_TIMEOUT');
  },
  async '`petql_upstream_calls_total` by its `status`'(given) {
    await failFor(given, { body: '{}' });
    await failFor(given, fails(503));
    await expectMetric(given, /^petql_upstream_calls_total\{.*status="503".*reason="failed".*\} [1-9]/m);
    await expectMetric(given, /^petql_upstream_calls_total\{.*status="2xx".*reason="unreadable".*\} [1-9]/m);
  },
  async '`FORBIDDEN`, and the log line'(given) {
    given.world.petApi.fault = says(403);
    expect(await codeOf(given, LIST)).toBe('FORBIDDEN');
  },
  async 'a warning of a possible ban'(given) {
    given.world.petApi.fault = { ...says(429), headers: { 'retry-after': '1' } };
    await codeOf(given, LIST);
    given.world.petApi.fault = says(403);
    await given.world.pass(2_000);
    for (let turn = 0; turn < 10; turn += 1) {
      await codeOf(given, LIST);
      await given.world.pass(2_000);
    }
    expect(linesOf(given.petql).filter(({ msg }) => /may be a ban; the key is paused/.test(String(msg)))).toHaveLength(
      1,
    );
    await expectMetric(given, /^petql_paused_keys(?:\{.*\})? 1$/m);
  },
  async '`UNAUTHENTICATED`, and `petql_upstream_calls_total'(given) {
    given.world.petApi.fault = says(401);
    await given.world.pass(MINUTE_MS);
    expect(await codeOf(given, LIST)).toBe('UNAUTHENTICATED');
    await expectMetric(given, /^petql_upstream_calls_total\{.*status="401".*\} [1-9]/m);
  },
  async '`OUTCOME_UNKNOWN`, and'(given) {
    given.world.petApi.fault = on('create', RESETS);
    expect(await codeOf(given, CREATE)).toBe('OUTCOME_UNKNOWN');
    await expectMetric(given, /^petql_operations_total\{.*outcome="OUTCOME_UNKNOWN".*\} 1$/m);
  },
  async 'the log line `a write had no clear response'(given) {
    given.world.petApi.fault = on('create', RESETS);
    await codeOf(given, CREATE);
    expectLines(given, UNKNOWN);
  },
};

describe('TROUBLESHOOTING.md', () => {
  const page = readFileSync(new URL('../../src/TROUBLESHOOTING.md', import.meta.url), 'utf8');
  const sections = page
    .split(/^## /m)
    .filter((text) => /^(?:The pet API fails|A create's outcome is unknown)/.test(text));
  const lines = sections
    .join('')
    .matchAll(/^- \*\*See:\*\* (.+)$/gm)
    .map(([, line = '']) => line);
  const said = [...lines].map((line) => [line, Object.keys(SEEN).filter((first) => line.startsWith(first))] as const);

  test('says nothing of these failures that no test shows', () => {
    expect(said.filter(([, shown]) => shown.length !== 1)).toEqual([]);
    expect(said).toHaveLength(Object.keys(SEEN).length);
  });

  test.each(Object.entries(SEEN))('%s …', async (_line, show) => {
    await using given = await start();
    await show(given);
    expect(linesOf(given.petql, GETS_CLOSE)).toEqual([]);
  });
});
