import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/common/plan.ts';
import { FORBIDS, HANGS, REFUSES, REJECTS_KEY, RESETS, fails, inTurn, on } from '../support/pet-api/fault.ts';
import type { FaultRule } from '../support/pet-api/fault.ts';
import { MINUTE_MS, createWorld } from '../support/world.ts';
import type { Petql, World } from '../support/world.ts';

const KEYS = ['key', 'second-key', 'third-key'];
const PLAN = { ...PLANS.pro, windows: 'fixed', tells: 'minute' } as const;

const createPetWorld = (): Promise<World> =>
  createWorld({
    seed: 1,
    startsAt: '2026-11-21T09:41:07Z',
    keys: Object.fromEntries(KEYS.map((key) => [key, PLAN])),
  });
/** The lines about calls, at the level of `info` and above. What is closed has lines of its own. */
const linesOf = ({ logLines }: Petql) =>
  logLines.filter(({ level, msg }) => level >= 30 && String(msg).startsWith('calls to the pet API'));
const WARNING = { level: 40, msg: 'calls to the pet API fail' };
const END = { level: 30, msg: 'calls to the pet API succeed again' };

/** Three keys read a list, by turns and each second. */
async function readFor(world: World, petql: Petql, durationMs: number): Promise<void> {
  for (let second = 0; second < durationMs / 1_000; second += 1) {
    const key = KEYS[second % KEYS.length] ?? '';
    await world.until(petql.ask('{ pets { id } }', { key, waitMs: 500 }));
    await world.pass(1_000);
  }
}

const PAGE = '<html>a page of a proxy</html>';
const KINDS: [string, FaultRule, object][] = [
  ['500', fails(500), { status: 500, reason: 'failed' }],
  ['a redirect', fails(302, { headers: { location: 'http://secret.test/' } }), { status: 302, reason: 'failed' }],
  ['308', fails(308), { status: 308, reason: 'failed', problem: expect.stringContaining('base URL') }],
  ['a page', { body: PAGE }, { status: 200, reason: 'unreadable', problem: 'the body: expected JSON' }],
  ['a part of its JSON', { body: '[{"id":1,"name":"Ada"' }, { status: 200, reason: 'unreadable' }],
  ['2 MB', { body: Buffer.alloc(2_097_152, ' ') }, { status: 200, reason: 'too-large' }],
  ['resets', RESETS, { reason: 'broken', code: 'ECONNRESET' }],
  ['silence', HANGS, { reason: 'timeout' }],
  ['no connection', REFUSES, { reason: 'unreachable', code: 'ECONNREFUSED' }],
];

describe.each(KINDS)('a pet API that answers with %s', (_name, fault, details) => {
  test.each([
    ['at once', false],
    ['behind cached data', true],
  ])('is one warning when it begins, %s, and one line when it ends', async (_when, isCached) => {
    await using world = await createPetWorld();
    const petql = await world.start({ plan: 'pro', upstreamTimeoutMs: 1_000 });
    if (isCached) await readFor(world, petql, 3_000);
    expect(linesOf(petql)).toEqual([]);
    world.petApi.fault = fault;
    await readFor(world, petql, MINUTE_MS);
    expect(linesOf(petql)).toMatchObject([{ ...WARNING, operation: 'listPets', ...details }]);
    world.petApi.fault = undefined;
    await readFor(world, petql, MINUTE_MS);
    expect(linesOf(petql)).toMatchObject([WARNING, END]);
    expect(JSON.stringify(linesOf(petql))).not.toMatch(/-key|pet-api\.test|secret\.test|html|Ada/);
  });
});

const to = (location: string, status = 307) => fails(status, { body: '', headers: { location } });
const SLASH = 'no base URL helps, the pet API has to serve its paths without a slash at the end';
const REDIRECTS: [string, FaultRule, target: string, advice: string][] = [
  ['FastAPI', to('http://pet-api.test/v1/pets/?limit=100'), 'the path /v1/pets/', SLASH],
  ['Django', to('/v1/pets/?limit=100', 301), 'the path /v1/pets/', SLASH],
  ['a framework behind TLS', to('https://secret.test/v1/pets/'), 'https, another host, the path /v1/pets/', SLASH],
  ['http to https', to('https://pet-api.test/v1/pets', 308), 'https, the path /v1/pets', 'the base URL needs a change'],
  ['another host', to('//secret.test/v1/pets'), 'another host, the path /v1/pets', 'the base URL needs a change'],
  ['another base path', to('/v2/pets', 301), 'the path /v2/pets', 'the base URL needs a change'],
  ['a login', to('/login;secret=1?next=secret', 302), 'the path /login', 'the base URL needs a change, or something'],
  ['an odd Location', to('http://['), '', 'the base URL needs a change'],
];

test.each(REDIRECTS)(
  'a redirect of %s: the log says where it points, and what helps',
  async (_of, fault, target, advice) => {
    await using world = await createPetWorld();
    const petql = await world.start({ plan: 'pro' });
    world.petApi.fault = fault;
    const { errors } = await world.until(petql.ask('{ pets { id } }'));
    await readFor(world, petql, 5_000);
    const [line] = linesOf(petql);
    const where = target === '' ? 'a redirect' : `a redirect to ${target}`;
    expect(line?.['problem']).toMatch(`${where}, which petql does not follow: ${advice}`);
    expect(errors?.[0]?.message).toMatch(/redirects with status 30.*in its log where to/);
    expect(JSON.stringify([linesOf(petql), errors])).not.toMatch(/secret|limit=|pet-api\.test/);
  },
);

test.each([
  ['with an Error body', fails(404)],
  ['without one', fails(404, { body: PAGE })],
])(
  'a list that is answered 404 %s has failed, and no get or create shows that it works again',
  async (_what, fault) => {
    await using world = await createPetWorld();
    const petql = await world.start({ plan: 'pro' });
    await readFor(world, petql, 3_000);
    world.petApi.fault = on('list', fails(500));
    await readFor(world, petql, 5_000);
    world.petApi.fault = on('list', fault);
    await readFor(world, petql, 5_000);
    expect(linesOf(petql)).toMatchObject([{ ...WARNING, operation: 'listPets', status: 500 }]);
  },
);

test('a list that is answered 404 is a warning of its own', async () => {
  await using world = await createPetWorld();
  const petql = await world.start({ plan: 'pro' });
  await readFor(world, petql, 3_000);
  world.petApi.fault = on('list', fails(404));
  await readFor(world, petql, 5_000);
  world.petApi.fault = undefined;
  await readFor(world, petql, MINUTE_MS);
  expect(linesOf(petql)).toMatchObject([{ ...WARNING, status: 404, reason: 'failed' }, END]);
});

test('a pet API that fails every second call fills no log: one pair of lines a minute', async () => {
  await using world = await createPetWorld();
  const petql = await world.start({ plan: 'pro', maxAgeMs: 0 });
  world.petApi.fault = inTurn(fails(500), undefined);
  await readFor(world, petql, 5 * MINUTE_MS);
  const lines = linesOf(petql);
  expect(lines.length).toBeGreaterThanOrEqual(4);
  expect(lines.length).toBeLessThanOrEqual(12);
  for (const [index, line] of lines.entries()) expect(line).toMatchObject(index % 2 === 0 ? WARNING : END);
});

test('late responses of calls from before a change do not change the state again', async () => {
  await using world = await createPetWorld();
  const petql = await world.start({ plan: 'pro', upstreamTimeoutMs: 120_000 });
  world.petApi.fault = on('sold', HANGS);
  const hung = petql.ask('{ pets(status: SOLD) { id } }', { waitMs: 130_000 });
  await readFor(world, petql, 5_000);
  world.petApi.fault = fails(500);
  await readFor(world, petql, 70_000);
  world.petApi.fault = undefined;
  await readFor(world, petql, MINUTE_MS);
  await world.until(hung);
  expect(linesOf(petql)).toMatchObject([WARNING, END]);
});

test.each([
  ['rejects a key', REJECTS_KEY],
  ['forbids a call', FORBIDS],
])('a pet API that %s has not failed', async (_name, fault) => {
  await using world = await createPetWorld();
  const petql = await world.start({ plan: 'pro' });
  world.petApi.fault = fault;
  await readFor(world, petql, 5_000);
  expect(linesOf(petql).filter(({ msg }) => msg === WARNING.msg)).toEqual([]);
});
