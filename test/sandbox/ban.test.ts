import { expect, test } from 'vitest';
import { startTestSandbox } from './start-test-sandbox.ts';
import type { TestSandbox } from './start-test-sandbox.ts';

const MINUTE_MS = 60_000;
const BAN_MS = 300_000;

test('a key that keeps calling after a 429 is banned with its tenth refusal', async () => {
  await using sandbox = await startFullSandbox();
  expect(await statuses(sandbox, 11)).toEqual([429, 429, 429, 429, 429, 429, 429, 429, 429, 403, 403]);
});

test('a banned key is told so in an Error, and how long the ban lasts', async () => {
  await using sandbox = await startFullSandbox();
  await statuses(sandbox, 10);
  sandbox.clock.nowMs += 100_000;
  const answer = await sandbox.call('GET /pets');
  expect(answer.status).toBe(403);
  expect(answer.body).toEqual({ code: 'key_banned', message: expect.any(String), status: 403 });
  expect(answer.headers.get('retry-after')).toBe('200');
  expect(answer.headers.get('x-ratelimit-remaining')).toBe('0');
  expect(answer.headers.get('x-ratelimit-reset')).toBe(String((sandbox.clock.nowMs + 200_000) / 1000));
});

test('a ban lasts through new minutes, ends on time however often it was called meanwhile, and is then forgotten', async () => {
  await using sandbox = await startFullSandbox();
  await statuses(sandbox, 10);
  const bannedAtMs = sandbox.clock.nowMs;
  sandbox.clock.nowMs = bannedAtMs + 2 * MINUTE_MS;
  expect(await statuses(sandbox, 3)).toEqual([403, 403, 403]);
  sandbox.clock.nowMs = bannedAtMs + BAN_MS - 1;
  expect(await statuses(sandbox, 1)).toEqual([403]);
  sandbox.clock.nowMs = bannedAtMs + BAN_MS;
  expect(await statuses(sandbox, 4)).toEqual([200, 200, 429, 429]);
});

test('a key that waits as long as Retry-After says is never banned', async () => {
  await using sandbox = await startFullSandbox();
  for (let minute = 0; minute < 12; minute += 1) {
    const refusal = await sandbox.call('GET /pets');
    expect(refusal.status).toBe(429);
    sandbox.clock.nowMs += Number(refusal.headers.get('retry-after')) * 1000;
    expect(await statuses(sandbox, 2)).toEqual([200, 200]);
  }
});

test('nine calls too many in each minute, as when they were in flight together, are no reason for a ban', async () => {
  await using sandbox = await startFullSandbox();
  for (let minute = 0; minute < 3; minute += 1) {
    expect(new Set(await statuses(sandbox, 9))).toEqual(new Set([429]));
    sandbox.clock.nowMs += MINUTE_MS;
    expect(await statuses(sandbox, 2)).toEqual([200, 200]);
  }
});

test('a key that is released into a day that is used up has ten refusals again', async () => {
  await using sandbox = await startTestSandbox({ keys: { 'demo-free': { name: 'small', perMinute: 5, perDay: 1 } } });
  expect(await statuses(sandbox, 11)).toEqual([200, ...Array.from({ length: 9 }, () => 429), 403]);
  sandbox.clock.nowMs += BAN_MS;
  expect(await statuses(sandbox, 10)).toEqual([...Array.from({ length: 9 }, () => 429), 403]);
});

test('a ban at one address is none at the other, nor one for another key', async () => {
  await using sandbox = await startFullSandbox();
  await statuses(sandbox, 10);
  expect((await sandbox.call('GET /pets', { staging: true })).status).toBe(200);
  expect((await sandbox.call('GET /pets', { key: 'other' })).status).toBe(200);
});

/** Two calls a minute, both of them spent. */
async function startFullSandbox(): Promise<TestSandbox> {
  const plan = { name: 'small', perMinute: 2, perDay: 1_000 };
  const sandbox = await startTestSandbox({ keys: { 'demo-free': plan, other: plan } });
  expect(await statuses(sandbox, 2)).toEqual([200, 200]);
  return sandbox;
}

async function statuses(sandbox: TestSandbox, times: number): Promise<number[]> {
  const answered: number[] = [];
  for (let call = 0; call < times; call += 1) answered.push((await sandbox.call('GET /pets?limit=1')).status);
  return answered;
}
