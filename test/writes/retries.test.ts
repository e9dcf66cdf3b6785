import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createNamedRecords } from '../../src/caller/named-records.ts';
import type { Int64 } from '../../src/int64.ts';
import { createKeptRecords } from '../../src/store/kept-records.ts';
import { createInsistentRecords } from '../../src/store/insistent-records.ts';
import type { Records } from '../../src/store/records.ts';
import { openStateFile } from '../../src/store/state-file.ts';
import { StoreAway } from '../../src/store/store-away.ts';
import { createCallerNames } from '../../src/throttle/caller-names.ts';
import { createSimulatedUpstream, startReplica, submit } from './simulation.ts';
import type { Fate, SimulatedUpstream } from './simulation.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const pet = { name: 'Momo', categoryId: '3' as Int64, status: undefined };

function startCaller(...fates: Fate[]) {
  return startCallerOver(openStateFile(':memory:', Date.now).records, () => fates.shift() ?? 'ok');
}

function startCallerOver(records: Records, nextFate: () => Fate) {
  const upstream = createSimulatedUpstream(() => ({ fate: nextFate(), thereMs: 1, backMs: 1 }));
  const named = createNamedRecords(records, createCallerNames(randomUUID()));
  const submits = { records: createInsistentRecords(named), leaseMs: 7_000 };
  return { upstream, caller: startReplica(upstream, submits).withKey('a-key') };
}

async function inTime<T>(promise: Promise<T>): Promise<T> {
  await vi.advanceTimersByTimeAsync(60_000);
  return promise;
}

const fatesOf = ({ posts }: SimulatedUpstream) => posts.map(({ fate }) => fate);

test.each([undefined, 'momo-1'])('a creation whose connection was never made is tried again (key: %s)', async (key) => {
  const { upstream, caller } = startCaller('unreachable', 'unreachable', 'ok');
  expect(await inTime(submit(caller, pet, key ? { key } : {}))).toBe('animal 1');
  expect(fatesOf(upstream)).toEqual(['unreachable', 'unreachable', 'ok']);
});

test('it is given up after four tries, and its idempotency key is free', async () => {
  const { upstream, caller } = startCaller('unreachable', 'unreachable', 'unreachable', 'unreachable');
  expect(await inTime(submit(caller, pet, { key: 'k' }))).toBe('DOWNSTREAM_SERVICE_ERROR');
  expect(upstream.posts).toHaveLength(4);
  expect(await inTime(submit(caller, { ...pet, name: 'Other' }, { key: 'k' }))).toBe('animal 1');
});

test('its idempotency key is free too where the store went away before the next try', async () => {
  let away = false;
  const store = openStateFile(':memory:', Date.now).records;
  const unlessAway = <T>(ask: () => Promise<T>) => (away ? Promise.reject(new StoreAway('away')) : ask());
  const records: Records = {
    find: (...args) => unlessAway(() => store.find(...args)),
    begin: (...args) => unlessAway(() => store.begin(...args)),
    settle: (...args) => unlessAway(() => store.settle(...args)),
    release: (...args) => unlessAway(() => store.release(...args)),
    close: () => store.close(),
  };
  const { upstream, caller } = startCallerOver(records, () => {
    away = upstream.posts.length === 0;
    return away ? 'unreachable' : 'ok';
  });
  expect(await inTime(submit(caller, pet, { key: 'k' }))).toBe('IDEMPOTENCY_UNAVAILABLE');
  away = false;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await inTime(submit(caller, pet, { key: 'k' }))).toBe('animal 1');
  expect(fatesOf(upstream)).toEqual(['unreachable', 'ok']);
});

test('it is not tried again past its deadline', async () => {
  const { upstream, caller } = startCaller('unreachable', 'unreachable', 'unreachable');
  expect(await inTime(submit(caller, pet, { waitMs: 200 }))).toBe('DOWNSTREAM_SERVICE_ERROR');
  expect(upstream.posts).toHaveLength(2);
});

test('it is not tried again for a client that is gone', async () => {
  const { upstream, caller } = startCaller('unreachable', 'unreachable');
  const visitor = new AbortController();
  const creating = submit(caller, pet, { signal: visitor.signal });
  await vi.advanceTimersByTimeAsync(50);
  visitor.abort();
  expect(await inTime(creating)).toBe('RATE_LIMITED');
  expect(upstream.posts).toHaveLength(1);
});

test.each<Fate>(['timeout', 'reset', '500'])('a creation that was sent and ended with %s is not', async (fate) => {
  const { upstream, caller } = startCaller(fate);
  expect(await inTime(submit(caller, pet))).toBe('OUTCOME_UNKNOWN');
  expect(upstream.posts).toHaveLength(1);
});

test('a creation that was refused with a 429 is sent again in its time, under the same idempotency key', async () => {
  const { upstream, caller } = startCaller('429', 'ok');
  const answers = Promise.all([submit(caller, pet, { key: 'k' }), submit(caller, pet, { key: 'k' })]);
  expect(await inTime(answers)).toEqual(['animal 1', 'animal 1']);
  expect(fatesOf(upstream)).toEqual(['429', 'ok']);
});

test('whoever waited for a submit that was given up sends its own', async () => {
  const { upstream, caller } = startCaller('429', 'ok');
  const first = submit(caller, pet, { key: 'k', waitMs: 2_000 });
  const second = submit(caller, pet, { key: 'k', waitMs: 30_000 });
  expect(await inTime(Promise.all([first, second]))).toEqual(['RATE_LIMITED', 'animal 1']);
  expect(fatesOf(upstream)).toEqual(['429', 'ok']);
});

test('where no more can be kept, nothing is sent under a new idempotency key, and the kept ones go on', async () => {
  const records = createKeptRecords({ database: new DatabaseSync(':memory:'), now: Date.now, most: 1 });
  const { upstream, caller } = startCallerOver(records, () => 'ok');
  expect(await inTime(submit(caller, pet, { key: 'one' }))).toBe('animal 1');
  expect(await inTime(submit(caller, pet, { key: 'two' }))).toBe('IDEMPOTENCY_UNAVAILABLE');
  expect(await inTime(submit(caller, pet, { key: 'one' }))).toBe('animal 1');
  expect(upstream.posts).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(86_400_000);
  expect(await inTime(submit(caller, pet, { key: 'two' }))).toBe('animal 2');
});
