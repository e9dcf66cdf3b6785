import { expect, test } from 'vitest';
import { fails, on } from '../support/pet-api/fault.ts';
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

test.each([
  ['410', fails(410)],
  ['404 without the Error body', { status: 404, body: '<html>' }],
  ['404 with half of the Error body', { status: 404, body: '{"code":"not_found","message":"no backend"}' }],
  ['405', { status: 405, body: '' }],
])('a route that answers %s is not called again at once, and its pet is found in a list', async (_what, fault) => {
  await using gateway = await at(Date.now(), 150);
  await look(gateway);
  gateway.petApi.fault = on('get', fault);
  expect((await gateway.query(byId('149'), { headers })).data).toEqual({ pet: { id: '149' } });
  expect((await gateway.query(byId('148'), { headers })).data).toEqual({ pet: { id: '148' } });
  expect(gets(gateway)).toHaveLength(1);
});

/** The next `reads` single reads get what a proxy without backends sends. */
function missNext({ petApi }: TestGateway, reads: number, status = 404): void {
  let left = reads;
  petApi.fault = ({ path }) => {
    if (left === 0 || !/^\/pets\/\d/.test(path)) return undefined;
    left -= 1;
    return { status, body: '<html>' };
  };
}

const minuteIsOver = () => {
  passedMs += 60_001;
};
const singleReads = async ({ endpoint }: TestGateway) => {
  const ready = await fetch(new URL('/health/ready', endpoint));
  return ((await ready.json()) as { upstream: { getRoute: boolean } }).upstream.getRoute;
};

test('a router that rejects a negative id costs no other read the route', async () => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  gateway.petApi.fault = ({ path }) => (path.startsWith('/pets/-') ? { status: 404, body: '<html>' } : undefined);
  await gateway.query(byId('-1'), { headers });
  expect((await gateway.query(byId('349'), { headers })).data).toEqual({ pet: { id: '349' } });
  expect(gets(gateway)).toHaveLength(1);
});

test.each([404, 405, 410])('one %i without the Error body stops single reads for a minute', async (status) => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  missNext(gateway, 1, status);
  await gateway.query(byId('349'), { headers });
  expect(await singleReads(gateway)).toBe(false);
  minuteIsOver();
  const { data, errors } = await gateway.query(byId('349'), { headers });
  expect([data, errors]).toEqual([{ pet: { id: '349' } }, undefined]);
  expect(await singleReads(gateway)).toBe(true);
  expect((await gateway.query(byId('404404'), { headers })).errors).toBeUndefined();
});

test('after the minute one of many reads is the probe, and after a good one all use the route', async () => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  missNext(gateway, 2);
  await gateway.query(byId('348'), { headers });
  minuteIsOver();
  const before = gets(gateway).length;
  const many = '{ petsById(ids: ["343", "344", "345", "346"]) { id } }';
  await gateway.query(many, { headers });
  // It was not there.
  expect(gets(gateway)).toHaveLength(before + 1);
  minuteIsOver();
  const { data, errors } = await gateway.query(many, { headers });
  expect([data?.['petsById'].length, errors]).toEqual([4, undefined]);
  expect(gets(gateway)).toHaveLength(before + 5);
});
