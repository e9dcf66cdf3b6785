import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { fails, forKey, on, slow } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { serve, servePort } from '../support/serve.ts';
import { overHttp, startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';
import { wirePet } from '../support/pet-api/wire-pet.ts';

const DOWN = 'DOWNSTREAM_SERVICE_ERROR';
const LIST = '{ pets(status: SOLD) { id name categoryId status } }';
const PET = { id: 3, name: 'a secret', categoryId: 2, status: 'sold' };
const STATUSES = [
  201, 202, 203, 204, 205, 206, 226, 300, 301, 302, 303, 304, 307, 308, 402, 404, 405, 406, 408, 409, 410, 413, 418,
  422, 451, 501, 502, 504, 599,
];

/** Each field left out, and of each type that it must not have. */
const WRONG_FIELDS = Object.entries({
  id: [undefined, '1', null, true, [], {}, 1e300, 1.5],
  name: [undefined, 1, null, true, [], {}],
  categoryId: [undefined, '1', null, false, [], {}],
  status: [1, true, [], {}],
}).flatMap(([field, values]) =>
  values.map((value): [string, Fault] => [
    `the ${field} ${JSON.stringify(value)}`,
    { body: JSON.stringify([{ ...PET, [field]: value }]) },
  ]),
);

const WRONG: [name: string, fault: Fault][] = [
  // A client that follows it finds pets there.
  ...STATUSES.map((status): [string, Fault] => [
    `status ${status}`,
    { status, headers: status < 400 ? { location: '/staging/v1/pets' } : {} },
  ]),
  ...WRONG_FIELDS,
  ['HTML', { body: '<!doctype html><title>secret</title>', headers: { 'content-type': 'text/html' } }],
  ['an empty body', { body: '' }],
  ['half a JSON body', { body: '[{"id":1,"name":"secret","categ' }],
  ['two JSON bodies', { body: '[][]' }],
  ['bytes that are no UTF-8', { body: Buffer.from([0x5b, 0x22, 0xff, 0xfe, 0x22, 0x5d]) }],
  ['JSON nested deeply', { body: '['.repeat(100_000) + ']'.repeat(100_000) }],
  ['an object', { body: JSON.stringify({ pets: [PET] }) }],
  ['null', { body: 'null' }],
  ['an id over int64', { body: `[${wirePet({ id: '9223372036854775808', name: '"secret"' })}]` }],
  [
    'other statuses than asked',
    { body: JSON.stringify([PET, { ...PET, id: 4, status: 'pending' }, { ...PET, id: 5, status: 'available' }]) },
  ],
  ['101 pets', { body: JSON.stringify(Array.from({ length: 101 }, (_, id) => ({ ...PET, id }))) }],
  ['340,000 objects', { body: `[${Array.from({ length: 340_000 }, () => '{}').join(',')}]` }],
  ['20 MB in gzip', { body: gzipSync(Buffer.alloc(20_000_000, ' ')), headers: { 'content-encoding': 'gzip' } }],
  ['gzip that is none', { body: '[]', headers: { 'content-encoding': 'gzip' } }],
  ['gzip that breaks off', { body: gzipSync('[]').subarray(0, 15), headers: { 'content-encoding': 'gzip' } }],
  ['a body of 20 MB', { body: Buffer.alloc(20_000_000, ' ') }],
  ['a header of 1 MB', { headers: { 'x-large': 'x'.repeat(1_000_000) } }],
];

describe('a list that breaks the contract', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    const plan = { perMinute: 5_000, perDay: 1_000_000 };
    const keys = Object.fromEntries(WRONG.map(([name]) => [encodeURIComponent(name), plan]));
    gateway = await startGateway({
      petApi: { pets: petSeeds(30), keys },
      gateway: { plan: '5000/1000000' },
      through: overHttp,
    });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test.each(WRONG)('is an error that never shows the body: %s', async (name, fault) => {
    const authorization = `Bearer ${encodeURIComponent(name)}`;
    const ask = (cacheControl: string) =>
      gateway.query(LIST, { headers: { authorization, 'cache-control': cacheControl } });
    const { data } = await ask('no-cache');
    expect(data?.['pets']).toHaveLength(10);
    gateway.petApi.fault = fault;
    const startedMs = performance.now();
    const fresh = await ask('no-cache');
    expect([fresh.data, codesOf(fresh)]).toEqual([{ pets: null }, [DOWN]]);
    const stale = await ask('max-age=0, max-stale');
    expect([stale.data, stale.extensions?.['petql'].staleReason]).toEqual([data, 'UPSTREAM_FAILED']);
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(JSON.stringify(fresh)).not.toMatch(/secret|127\.0\.0\.1/);
    gateway.petApi.fault = undefined;
    expect((await ask('no-cache')).data).toEqual(data);
    const quota = '{ rateLimit { windows { window used } } }';
    const counted = (await gateway.query(quota, { headers: { authorization } })).data?.['rateLimit'].windows[1];
    const calls = gateway.petApi.log.filter(({ key }) => key === encodeURIComponent(name));
    expect(counted).toEqual({ window: 'DAY', used: calls.length });
  });
});

test('the error names the field that is wrong', async () => {
  await using gateway = await startGateway();
  const nameless = { ...PET, name: undefined };
  gateway.petApi.fault = { body: JSON.stringify([PET, { ...nameless, id: 4 }, { ...nameless, id: 5 }]) };
  const { errors } = await gateway.query('{ pets { id } }');
  expect(errors?.[0]).toMatchObject({
    message: expect.stringContaining('[1].name'),
    extensions: { code: DOWN, upstream: { status: 200 } },
  });
});

test('a pet with another id than the one asked for is an error', async () => {
  await using gateway = await startGateway();
  gateway.petApi.fault = [on('7', { body: JSON.stringify(PET) }), fails()];
  expect(codesOf(await gateway.query('{ pet(id: "7") { id } }'))).toEqual([DOWN]);
});

test('an unknown status is null and one log line, in lists, by id and on create', async () => {
  await using gateway = await startGateway();
  const strange = { id: 1, name: 'Ada', categoryId: 3, status: 'no-such-status', owner: { secret: 1 } };
  gateway.petApi.fault = [on('list', { body: JSON.stringify([strange, PET]) }), { body: JSON.stringify(strange) }];
  const sold = { id: '3', status: 'SOLD' };
  const { data, errors } = await gateway.query('{ pets { id status } sold: pets(status: SOLD) { id status } }');
  expect(errors).toBeUndefined();
  expect(data).toEqual({ pets: [{ id: '1', status: null }, sold], sold: [sold] });
  const create = 'mutation { createPet(input: { name: "Ada", categoryId: 3 }) { pet { id status } } }';
  expect((await gateway.query(create)).data?.['createPet'].pet).toEqual({ id: '1', status: null });
  expect((await gateway.query('{ pet(id: "1") { id status } }')).data).toEqual({ pet: { id: '1', status: null } });
  const lines = gateway.logLines.filter(({ petId }) => petId !== undefined);
  expect(lines).toMatchObject([{ level: 40, petId: '1' }]);
  expect(JSON.stringify(lines)).not.toMatch(/Ada|no-such-status|secret/);
});

test('int64s and names pass both ways unchanged, and a created pet is readable at once', async () => {
  await using gateway = await startGateway();
  const input = { name: 'Zoë 🐈‍⬛ "quoted" \\ \u2028', categoryId: '9223372036854775807', status: 'PENDING' };
  const fields = '{ id name categoryId status }';
  const query = `mutation ($input: CreatePetInput!) { createPet(input: $input) { pet ${fields} } }`;
  const pet = (await gateway.query(query, { variables: { input } })).data?.['createPet'].pet;
  expect(pet).toEqual({ id: expect.stringMatching(/^\d+$/), ...input });
  expect(gateway.petApi.log[0]?.body).toContain('"categoryId":9223372036854775807');
  expect((await gateway.query(`{ pet(id: "${pet.id}") ${fields} }`)).data).toEqual({ pet });
});

test.each(['<https://pets/?page=2>; rel="next"', '</v1/pets?a=b>; rel=next', '<x>; rel="prev", <y>; rel="last next"'])(
  'a short list with the next page %s does not prove that a pet is missing',
  async (link) => {
    await using gateway = await startGateway();
    const part = { headers: { link }, body: JSON.stringify([PET]) };
    gateway.petApi.fault = on('list', part);
    await gateway.query('{ pets { id } }');
    expect((await gateway.query('{ pet(id: "2") { id } }')).data).toEqual({ pet: { id: '2' } });
  },
);

test.each([
  [{ 'x-total-count': '200' }, '2'],
  [{ 'x-total': '2' }, '2'],
  [{ 'content-range': 'pets 0-0/200' }, '2'],
  [{ 'x-next-page': '2' }, '2'],
  [{ 'x-total-count': '1', 'content-range': 'pets 0-0/*', 'x-next-page': '' }, undefined],
  [{ 'x-total-count': 'many', 'x-total': '-1' }, undefined],
])('a short list with the headers %j leaves pet 2 as %s', async (headers, id) => {
  await using gateway = await startGateway();
  gateway.petApi.fault = on('list', { headers, body: JSON.stringify([PET]) });
  await gateway.query('{ pets { id } }');
  expect((await gateway.query('{ pet(id: "2") { id } }')).data).toEqual({ pet: id === undefined ? null : { id } });
});

describe('a base URL without /v1', () => {
  test.each(['{ pets { id } }', '{ pet(id: "1") { id } }', '{ a: pet(id: "1") { id } pets(status: SOLD) { id } }'])(
    'costs %s one call, and the error names /v1',
    async (query) => {
      await using gateway = await startGateway({ through: async (url) => ({ url: url.replace('/v1', '/elsewhere') }) });
      const { errors } = await gateway.query(query);
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining('/v1'),
        extensions: { code: DOWN, upstream: { status: 404 } },
      });
      expect(gateway.petApi.log).toHaveLength(1);
      await gateway.query(query);
      expect(gateway.logLines.filter(({ path }) => path === '/elsewhere')).toMatchObject([{ level: 40 }]);
    },
  );

  test('is read where a proxy adds it', async () => {
    await using gateway = await startGateway({
      async through(target) {
        const proxy = await serve((request, response) => {
          const headers = { authorization: request.headers.authorization ?? '' };
          void fetch(target + (request.url ?? ''), { headers }).then(async (answer) => {
            response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
          });
        });
        onTestFinished(() => proxy[Symbol.asyncDispose]());
        return { url: proxy.origin };
      },
    });
    expect((await gateway.query('{ pets { id } }')).errors).toBeUndefined();
    expect((await gateway.query('{ pet(id: "404404") { id } }')).data).toEqual({ pet: null });
  });
});

describe('an upstream that cannot be reached', () => {
  test.each<[string, string, RegExp]>([
    ['refuses connections', 'http://127.0.0.1:9', /^ECONNREFUSED$/],
    ['has no address', 'http://petql.invalid', /^(ENOTFOUND|EAI_AGAIN)$/],
    ['speaks no TLS', 'https://127.0.0.1:PORT', /^(ERR_SSL_\w+|EPROTO)$/],
  ])('since it %s is one log line with the code and without the address', async (_name, origin, code) => {
    await using plain = await servePort((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const url = origin.replace('PORT', String(plain.port));
    await using gateway = await startGateway({ gateway: { petApiUrl: `${url}/v1` } });
    for (let call = 0; call < 3; call += 1) {
      const answer = await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache' } });
      expect(codesOf(answer)).toEqual([DOWN]);
      expect(JSON.stringify(answer)).not.toMatch(/ECONNREFUSED|ENOTFOUND|127\.0\.0\.1/);
    }
    const lines = gateway.logLines.filter((line) => line['reason'] !== undefined);
    expect(lines.filter(({ level }) => level >= 40)).toMatchObject([
      { level: 40, reason: 'unreachable', code: expect.stringMatching(code) },
    ]);
    expect(JSON.stringify(lines)).not.toMatch(/127\.0\.0\.1|invalid/);
  });
});

// Calls that waited for a connection behind those of other keys counted as too slow.
test('busy keys on a slow upstream make no call of another key time out', async () => {
  const plan = { perMinute: 5_000, perDay: 1_000_000 };
  const busy = Array.from({ length: 10 }, (_, index) => `busy-${index}`);
  const keys = Object.fromEntries([...busy, 'other'].map((key) => [key, plan]));
  await using busyGateway = await startGateway({
    petApi: { keys },
    gateway: { plan: '5000/1000000' },
    through: overHttp,
  });
  const run = async (apiKey: string, document: string) =>
    (await busyGateway.gateway.execute({ document, apiKey })).errors;
  await Promise.all(Object.keys(keys).map((key) => run(key, '{ pets { id } }')));
  const adopt = 'mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id } } }';
  // Successes prove that so many may go at once.
  for (let call = 0; call < 10; call += 1) await Promise.all(busy.map((key) => run(key, adopt)));
  busyGateway.petApi.log.length = 0;
  busyGateway.petApi.fault = busy.map((key) => forKey(key, slow(10_000)));
  const ended: string[] = [];
  for (const key of busy) for (let call = 0; call < 10; call += 1) void run(key, adopt).then(() => ended.push(key));
  // 64 connections were all that there were.
  await expect.poll(() => busyGateway.petApi.log.length, { interval: 5 }).toBeGreaterThanOrEqual(64);
  expect(await run('other', adopt)).toBeUndefined();
  expect(ended).toEqual([]);
});
