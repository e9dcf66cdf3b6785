import { expect, test } from 'vitest';
import { PET_STATUSES } from '../../src/pet.ts';
import { modelPet } from '../caller/model-store.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const DAY_MS = 86_400_000;
const SUNSET_MS = Date.UTC(2030, 11, 5);
const headers = { authorization: 'Bearer demo-business' };

/** Over a store of so many animals, a third of them in each status, whose service's clock shows this moment. */
function at(serviceNowMs: number, animals: number): Promise<TestGateway> {
  const offsetMs = serviceNowMs - Date.now();
  const seeds = Array.from({ length: animals }, (_, index) => {
    const { id: _taken, ...seed } = modelPet(index + 1, PET_STATUSES[index % 3]);
    return seed;
  });
  return startGateway({ sandbox: { seeds, clock: { now: () => Date.now() + offsetMs } } });
}

const gets = ({ sandbox }: TestGateway) => sandbox.calls.filter(({ path }) => /^\/pets\/\d/.test(path));
const animal = (id: string) => `{ pet(id: "${id}") { id } }`;
/** After this the service's clock is known. */
const look = (gateway: TestGateway) => gateway.query('{ pets(limit: 1) { id } }', { headers });

test('past the sunset by the clock of the service, no animal is asked for by itself', async () => {
  await using gateway = await at(SUNSET_MS + 60_000, 150);
  await look(gateway);
  // Shown by no listing of all, but by the one of its status.
  expect((await gateway.query(animal('149'), { headers })).data).toEqual({ pet: { id: '149' } });
  const many = '{ petsById(ids: ["1", "120", "148", "150"]) { id } }';
  expect((await gateway.query(many, { headers })).data?.['petsById'].map(({ id }: { id: string }) => id)).toEqual([
    '1',
    '120',
    '148',
    '150',
  ]);
  expect(gets(gateway)).toEqual([]);
  expect(gateway.sandbox.calls.length).toBeLessThanOrEqual(5);
});

test('where listings cannot prove that there is no such animal, the error says so', async () => {
  await using gateway = await at(SUNSET_MS + 60_000, 150);
  await look(gateway);
  const { data, errors } = await gateway.query(animal('404404'), { headers });
  expect(data).toEqual({ pet: null });
  expect(errors).toMatchObject([
    { message: expect.stringContaining('cannot be told'), extensions: { code: 'DOWNSTREAM_SERVICE_ERROR' } },
  ]);
  expect(gets(gateway)).toEqual([]);
});

test('a listing that shows the whole store proves it', async () => {
  await using gateway = await at(SUNSET_MS + 60_000, 99);
  await look(gateway);
  const { data, errors } = await gateway.query(animal('404404'), { headers });
  expect([data, errors]).toEqual([{ pet: null }, undefined]);
  expect(gateway.sandbox.calls).toHaveLength(1);
});

test('a while before the sunset, animals are still asked for', async () => {
  await using gateway = await at(SUNSET_MS - 900_000, 150);
  await look(gateway);
  await gateway.query(animal('149'), { headers });
  expect(gets(gateway)).toHaveLength(1);
});

/** The service's clock goes on to this moment, and without the route it answers as it does for an animal that is not there. */
function withoutRoute({ sandbox }: TestGateway, nowMs: number): void {
  const dated = { headers: { date: new Date(nowMs).toUTCString() } };
  const body = JSON.stringify({ code: 'not_found', message: 'The requested resource could not be found.' });
  sandbox.setFault(({ path }) => (/^\/pets\/\d/.test(path) ? { ...dated, status: 404, body } : dated));
}

test.each([
  ['shortly before it', -500, true],
  ['as long before it as a call may take', -600_000, true],
  ['after it, while the clock of the service is not known', 60_000, false],
])('a route that goes at the sunset with a 404 and the Error body makes no null: %s', async (_when, atMs, looks) => {
  await using gateway = await at(SUNSET_MS + atMs, 150);
  if (looks) await look(gateway);
  withoutRoute(gateway, SUNSET_MS + 60_000);
  expect((await gateway.query(animal('149'), { headers })).data).toEqual({ pet: { id: '149' } });
  expect((await gateway.query(animal('148'), { headers })).data).toEqual({ pet: { id: '148' } });
  expect(gets(gateway)).toHaveLength(looks ? 0 : 1);
});

test('a get that is sent before the sunset and answered after it makes no null either', async () => {
  await using gateway = await at(SUNSET_MS - 900_000, 150);
  await look(gateway);
  withoutRoute(gateway, SUNSET_MS + 1_000);
  expect((await gateway.query(animal('149'), { headers })).data).toEqual({ pet: { id: '149' } });
  expect(gets(gateway)).toHaveLength(1);
});

test.each([
  ['410', { status: 410 }],
  ['404 without the Error body', { status: 404, body: '<html>' }],
  ['405', { status: 405, body: '' }],
])('a route that answers %s is not asked again at once, and its animal is found in a listing', async (_what, fault) => {
  await using gateway = await at(Date.now(), 150);
  await look(gateway);
  gateway.sandbox.setFault(({ path }) => (/^\/pets\/\d/.test(path) ? fault : undefined));
  expect((await gateway.query(animal('149'), { headers })).data).toEqual({ pet: { id: '149' } });
  expect((await gateway.query(animal('148'), { headers })).data).toEqual({ pet: { id: '148' } });
  expect(gets(gateway)).toHaveLength(1);
});

/** The next so many reads of single animals are answered as a proxy without backends does. */
function missNext({ sandbox }: TestGateway, reads: number, status = 404): void {
  let left = reads;
  sandbox.setFault(({ path }) => {
    if (left === 0 || !/^\/pets\/\d/.test(path)) return undefined;
    left -= 1;
    return { status, body: '<html>' };
  });
}

const restIsOver = () =>
  new Promise((resolve) => {
    setTimeout(resolve, 1_100);
  });
const singleReads = async ({ endpoint }: TestGateway) => {
  const ready = await fetch(new URL('/health/ready', endpoint));
  return ((await ready.json()) as { upstream: { singleReads: boolean } }).upstream.singleReads;
};

test('after an earlier sunset that was told, a 404 with the Error body makes no null', async () => {
  await using gateway = await at(Date.now(), 150);
  const sunset = new Date(Date.now() + 1_000).toUTCString();
  gateway.sandbox.setFault(({ path }) => (/^\/pets\/\d/.test(path) ? { headers: { sunset } } : undefined));
  expect((await gateway.query(animal('148'), { headers })).data).toEqual({ pet: { id: '148' } });
  withoutRoute(gateway, Date.now() + 2_000);
  expect((await gateway.query(animal('149'), { headers })).data).toEqual({ pet: { id: '149' } });
  // It is known by now, and nobody asks for the next one.
  expect((await gateway.query(animal('147'), { headers })).data).toEqual({ pet: { id: '147' } });
  expect(gets(gateway)).toHaveLength(2);
});

test('where a router knows no id below zero, asking for one costs nobody else the route', async () => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  gateway.sandbox.setFault(({ path }) => (path.startsWith('/pets/-') ? { status: 404, body: '<html>' } : undefined));
  await gateway.query(animal('-1'), { headers });
  expect((await gateway.query(animal('349'), { headers })).data).toEqual({ pet: { id: '349' } });
  expect(gets(gateway)).toHaveLength(1);
});

// A deployment of the service took reads of single animals from all callers for an hour, and one 410 took them for good.
test.each([404, 405, 410])('one answer of %i that is of no route costs other reads a second', async (status) => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  missNext(gateway, 1, status);
  await gateway.query(animal('349'), { headers });
  expect(await singleReads(gateway)).toBe(false);
  await restIsOver();
  const { data, errors } = await gateway.query(animal('349'), { headers });
  expect([data, errors]).toEqual([{ pet: { id: '349' } }, undefined]);
  expect(await singleReads(gateway)).toBe(true);
  expect((await gateway.query(animal('404404'), { headers })).errors).toBeUndefined();
});

test('when the rest is over, one of many looks whether the route is there, and the others then ask too', async () => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  missNext(gateway, 2);
  await gateway.query(animal('348'), { headers });
  await restIsOver();
  const before = gets(gateway).length;
  const many = '{ petsById(ids: ["343", "344", "345", "346"]) { id } }';
  await gateway.query(many, { headers });
  // It was not there.
  expect(gets(gateway)).toHaveLength(before + 1);
  await restIsOver();
  await restIsOver();
  const { data, errors } = await gateway.query(many, { headers });
  expect([data?.['petsById'].length, errors]).toEqual([4, undefined]);
  expect(gets(gateway)).toHaveLength(before + 5);
});

test('an animal that is always answered as if there were no route is asked for once by each that wants it', async () => {
  await using gateway = await at(Date.now(), 350);
  await look(gateway);
  gateway.sandbox.setFault(({ path }) => (path === '/pets/349' ? { status: 404, body: '<html>' } : undefined));
  const { data } = await gateway.query('{ a: pet(id: "349") { id } b: pet(id: "348") { id } }', { headers });
  expect(data).toMatchObject({ a: null, b: { id: '348' } });
  expect(gets(gateway).map(({ path }) => path)).toEqual(['/pets/349', '/pets/348']);
});

test.each([
  ['half a year and more', 181, 0],
  ['less than that', 179, 1],
])('a sunset that is %s away is logged once, or not at all', async (_when, days, lines) => {
  await using gateway = await at(SUNSET_MS - days * DAY_MS, 150);
  await look(gateway);
  for (const id of ['148', '149', '150']) await gateway.query(animal(id), { headers });
  expect(gets(gateway)).toHaveLength(3);
  const logged = gateway.logLines.filter(({ msg }) => String(msg).includes('withdraws'));
  expect(logged).toHaveLength(lines);
  const ready = await fetch(new URL('/health/ready', gateway.endpoint));
  const { upstream } = (await ready.json()) as { upstream: Record<string, unknown> };
  expect(upstream['sunset']).toBe(lines === 0 ? undefined : new Date(SUNSET_MS).toISOString());
});
