import { describe, expect, test } from 'vitest';
import { fails, on } from '../support/pet-api/fault.ts';
import type { Fault } from '../support/pet-api/fault.ts';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const DAY_MS = 86_400_000;
const SUNSET_MS = Date.UTC(2030, 11, 5);
const headers = { authorization: 'Bearer demo-business' };

/** How far the clocks of petql and the upstream are ahead of the machine's, and how much more time has passed for petql. */
let offsetMs = 0;
let passedMs = 0;
const clock = { now: () => Date.now() + offsetMs + passedMs, elapsed: () => performance.now() + passedMs };

/** Over a store with this many pets, a third of them in each status. All clocks show this moment. */
function at(nowMs: number, pets: number): Promise<TestGateway> {
  offsetMs = nowMs - Date.now();
  passedMs = 0;
  return startGateway({
    petApi: { pets: petSeeds(pets), now: () => Date.now() + offsetMs },
    gateway: { clock },
  });
}

const gets = ({ petApi }: TestGateway) => petApi.log.filter(({ path }) => /^\/pets\/\d/.test(path));
const byId = (id: string) => `{ pet(id: "${id}") { id } }`;
/** After this the size of the store is known. */
const look = (gateway: TestGateway) => gateway.query('{ pets(limit: 1) { id } }', { headers });

test('past the sunset, no pet is called for by itself', async () => {
  await using gateway = await at(SUNSET_MS + 60_000, 150);
  await look(gateway);
  // Only the list of its status shows it.
  expect((await gateway.query(byId('149'), { headers })).data).toEqual({ pet: { id: '149' } });
  const many = '{ petsById(ids: ["1", "120", "148", "150"]) { id } }';
  expect((await gateway.query(many, { headers })).data?.['petsById'].map(({ id }: { id: string }) => id)).toEqual([
    '1',
    '120',
    '148',
    '150',
  ]);
  expect(gets(gateway)).toEqual([]);
  expect(gateway.petApi.log.length).toBeLessThanOrEqual(5);
});

test('where lists cannot prove that a pet is missing, the error says so', async () => {
  await using gateway = await at(SUNSET_MS + 60_000, 150);
  await look(gateway);
  const { data, errors } = await gateway.query(byId('404404'), { headers });
  expect(data).toEqual({ pet: null });
  expect(errors).toMatchObject([{ extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } }]);
  expect(gets(gateway)).toEqual([]);
});

test('a list that shows the whole store proves it', async () => {
  await using gateway = await at(SUNSET_MS + 60_000, 99);
  await look(gateway);
  const { data, errors } = await gateway.query(byId('404404'), { headers });
  expect([data, errors]).toEqual([{ pet: null }, undefined]);
  expect(gateway.petApi.log).toHaveLength(1);
});

test('a while before the sunset, pets are still called for', async () => {
  await using gateway = await at(SUNSET_MS - 900_000, 150);
  await look(gateway);
  await gateway.query(byId('149'), { headers });
  expect(gets(gateway)).toHaveLength(1);
});

/** Every response has this date, and those without the route are like the one for a missing pet. */
function withoutRoute({ petApi }: TestGateway, nowMs: number): void {
  const dated = { headers: { date: new Date(nowMs).toUTCString() } };
  const body = JSON.stringify({
    code: 'not_found',
    message: 'The requested resource could not be found.',
    status: 404,
  });
  petApi.fault = ({ path }) => (/^\/pets\/\d/.test(path) ? { ...dated, status: 404, body } : dated);
}

test.each([
  ['shortly before', -500],
  ['as long before as a call may take', -600_000],
])('a route that goes at the sunset with a 404 and its Error body makes no null: %s', async (_when, atMs) => {
  await using gateway = await at(SUNSET_MS + atMs, 150);
  await look(gateway);
  withoutRoute(gateway, SUNSET_MS + 60_000);
  expect((await gateway.query(byId('149'), { headers })).data).toEqual({ pet: { id: '149' } });
  expect((await gateway.query(byId('148'), { headers })).data).toEqual({ pet: { id: '148' } });
  expect(gets(gateway)).toEqual([]);
});

test.each([
  ['Sunset', { sunset: new Date(0).toUTCString() }],
  ['Sunset that is no date', { sunset: '12' }],
  ['Date past the sunset', { date: new Date(SUNSET_MS + DAY_MS).toUTCString() }],
])('one wrong %s header ends no single reads', async (_name, wrong) => {
  await using gateway = await at(Date.now(), 350);
  gateway.petApi.fault = { headers: wrong };
  await look(gateway);
  await gateway.query(byId('348'), { headers });
  gateway.petApi.fault = undefined;
  expect((await gateway.query(byId('349'), { headers })).data).toEqual({ pet: { id: '349' } });
  expect(gets(gateway)).toHaveLength(2);
});

const ODD: [what: string, fault: Fault][] = [
  ['410', fails(410)],
  ['404 without the Error body', { status: 404, body: '<html>' }],
  ['404 with half of the Error body', { status: 404, body: '{"code":"not_found","message":"no backend"}' }],
  ['405', { status: 405, body: '' }],
];

describe.each(ODD)('a get that is answered %s', (_what, fault) => {
  test('fails alone, with the status, and costs one list at most', async () => {
    await using gateway = await at(Date.now(), 350);
    gateway.petApi.fault = [on('list', {}), on('2147483648', fault)];
    await look(gateway);
    const before = gateway.petApi.log.length;
    const { data, errors } = await gateway.query(byId('2147483648'), { headers });
    expect(data).toEqual({ pet: null });
    expect(errors).toMatchObject([
      {
        message: expect.stringMatching(/status 4\d\d as if it had no lookup by id/),
        extensions: { code: 'DOWNSTREAM_SERVICE_ERROR', upstream: { status: fault.status } },
      },
    ]);
    expect(gateway.petApi.log.length - before).toBeLessThanOrEqual(2);
    for (const id of ['348', '349', '350'])
      expect((await gateway.query(byId(id), { headers })).data).toEqual({ pet: { id } });
    expect((await gateway.query(byId('404404'), { headers })).errors).toBeUndefined();
    expect(await singleReads(gateway)).toBe(true);
  });
});

/** The next `reads` single reads get what a proxy without backends sends. */
function missNext({ petApi }: TestGateway, reads: number): void {
  let left = reads;
  petApi.fault = ({ path }) => {
    if (left === 0 || !/^\/pets\/\d/.test(path)) return undefined;
    left -= 1;
    return { status: 404, body: '<html>' };
  };
}

const singleReads = async ({ endpoint }: TestGateway) => {
  const ready = await fetch(new URL('/health/ready', endpoint));
  return ((await ready.json()) as { upstream: { getRoute: boolean } }).upstream.getRoute;
};

test('a hiccup of a proxy is over a second after it, for one probe of many reads', async () => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  missNext(gateway, 4);
  for (const id of ['340', '341', '342']) await gateway.query(byId(id), { headers });
  expect(await singleReads(gateway)).toBe(false);

  passedMs += 1_001;
  const many = '{ petsById(ids: ["343", "344", "345", "346"]) { id } }';
  await gateway.query(many, { headers });
  // The probe finds no route, so the next one waits for 2 s.
  expect(gets(gateway)).toHaveLength(4);
  passedMs += 1_001;
  await gateway.query(byId('347'), { headers });
  expect(gets(gateway)).toHaveLength(4);

  passedMs += 1_000;
  const { data, errors } = await gateway.query(many, { headers });
  expect([data?.['petsById'].length, errors]).toEqual([4, undefined]);
  expect(await singleReads(gateway)).toBe(true);
});

test('many gets that meet a hiccup at once are one reason to wait for a second', async () => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  const ids = Array.from({ length: 40 }, (_, index) => String(index + 301));
  // Successes prove that so many may go at once.
  await gateway.query(`{ petsById(ids: ${JSON.stringify(ids.slice(0, 15))}) { id } }`, { headers });
  passedMs += 2_000;
  gateway.petApi.fault = on('get', { status: 404, body: '<html>', delayMs: 50 });
  await gateway.query(`{ petsById(ids: ${JSON.stringify(ids)}) { id } }`, { headers });
  expect(gets(gateway).length).toBeGreaterThan(10);

  gateway.petApi.fault = undefined;
  passedMs += 1_001;
  expect((await gateway.query(byId('345'), { headers })).data).toEqual({ pet: { id: '345' } });
  expect(await singleReads(gateway)).toBe(true);
});

test('a route that stays away is probed twice a minute', async () => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  gateway.petApi.fault = on('get', fails(410));
  for (let second = 0; second < 600; second += 1) {
    passedMs += 1_000;
    await gateway.query(byId(String(101 + (second % 200))), { headers });
  }
  expect(gets(gateway).length).toBeLessThanOrEqual(30);
  const lines = gateway.logLines.filter(({ operation }) => operation === 'getPet');
  expect(lines).toMatchObject([{ level: 40, status: 410 }]);
});

test.each(['-1', '9223372036854775807', '2147483648'])(
  'a router that does not take %s costs no other read the route',
  async (id) => {
    await using gateway = await at(Date.now(), 350);
    await look(gateway);
    gateway.petApi.fault = ({ path }) => (path === `/pets/${id}` ? { status: 404, body: '<html>' } : undefined);
    for (const other of ['347', '348', '349']) {
      await gateway.query(byId(id), { headers });
      expect((await gateway.query(byId(other), { headers })).data).toEqual({ pet: { id: other } });
    }
  },
);

describe('before any call has worked', () => {
  test('a 404 of a pet is checked by a list, and is null where that works', async () => {
    await using gateway = await at(Date.now(), 350);
    const { data, errors } = await gateway.query(byId('404404'), { headers });
    expect([data, errors]).toEqual([{ pet: null }, undefined]);
    expect(gateway.petApi.log.map(({ target }) => target)).toEqual(['404404', 'all', '404404']);
    await gateway.query(byId('404405'), { headers });
    expect(gateway.petApi.log).toHaveLength(4);
  });

  test.each([
    ['with the Error body', fails(404)],
    ['without it', { status: 404, body: '<html>' }],
  ])('404s %s prove no absence, and are a warning', async (_what, fault) => {
    await using gateway = await at(Date.now(), 350);
    gateway.petApi.fault = fault;
    const adopt = 'mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id } } }';
    for (const document of [byId('7'), '{ petsById(ids: ["1", "2"]) { id } }', '{ pets { id } }', adopt]) {
      const before = gateway.petApi.log.length;
      // The backoff of an API whose calls all fail.
      passedMs += 31_000;
      const { errors } = await gateway.query(document, { headers: { ...headers, 'cache-control': 'no-cache' } });
      expect(errors?.[0]).toMatchObject({
        message: expect.stringContaining('base URL'),
        extensions: { code: 'DOWNSTREAM_SERVICE_ERROR', upstream: { status: 404 } },
      });
      expect(gateway.petApi.log.length - before).toBeLessThanOrEqual(2);
    }
    const lines = gateway.logLines.filter(({ msg }) => String(msg).includes('base URL'));
    expect(lines).toMatchObject([{ level: 40, path: '/v1' }]);
  });
});
