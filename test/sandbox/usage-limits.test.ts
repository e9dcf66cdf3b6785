import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { PLAN_KEYS } from '../../src/program/sandbox/demo-keys.ts';
import { UsageLimits } from '../../src/program/sandbox/usage-limits.ts';
import { START_MS, startTestSandbox } from './start-test-sandbox.ts';
import type { SandboxAnswer, TestSandbox } from './start-test-sandbox.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const BAN_MS = 300_000;
const END_OF_MINUTE_MS = Date.UTC(2026, 0, 5, 10, 31);
const MINUTE = END_OF_MINUTE_MS / 1000;
const MIDNIGHT = Date.UTC(2026, 0, 6) / 1000;
const REJECTED = Array.from({ length: 9 }, () => 429);

test('the demo keys have the published plans', () => {
  expect(Object.values(PLAN_KEYS).slice(0, 3)).toEqual([
    { perMinute: 60, perDay: 1_000 },
    { perMinute: 300, perDay: 10_000 },
    { perMinute: 1_000, perDay: 100_000 },
  ]);
});

test('no window holds more than the plan, and no call is rejected before one is full', () => {
  const [perMinute, perDay] = [3, 8];
  const pause = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 90_000 }), fc.integer({ min: 1, max: DAY_MS }));
  fc.assert(
    fc.property(fc.array(pause, { maxLength: 60 }), (pauses) => {
      const limits = new UsageLimits({ perMinute, perDay });
      const used = new Map<string, number>();
      let nowMs = START_MS;
      for (const pauseMs of pauses) {
        nowMs += pauseMs;
        const [minute, day] = [`minute ${Math.floor(nowMs / MINUTE_MS)}`, `day ${Math.floor(nowMs / DAY_MS)}`];
        const { kind } = limits.admit(nowMs);
        if (kind === 'banned') continue;
        const isFull = used.get(minute) === perMinute || used.get(day) === perDay;
        expect(kind).toBe(isFull ? 'limited' : 'admitted');
        if (!isFull) for (const window of [minute, day]) used.set(window, (used.get(window) ?? 0) + 1);
      }
    }),
  );
});

describe('the rate-limit headers', () => {
  test('show the window with fewer calls left, the minute where both have the same', async () => {
    await using sandbox = await startTestSandbox(small(4, 5));
    expect(await callTimes(sandbox, 1)).toEqual([[4, 3, MINUTE]]);
    sandbox.clock.nowMs = END_OF_MINUTE_MS;
    expect(await callTimes(sandbox, 1)).toEqual([[4, 3, MINUTE + 60]]);
    sandbox.clock.nowMs = END_OF_MINUTE_MS + MINUTE_MS;
    const left = [2, 1, 0].map((remaining) => [5, remaining, MIDNIGHT]);
    expect(await callTimes(sandbox, 3)).toEqual(left);
  });

  test('of Enterprise show the day, too, so that petql knows the plan after a few calls', async () => {
    await using sandbox = await startTestSandbox();
    const gateway = createGateway({ petApiUrl: sandbox.url });
    onTestFinished(() => gateway.close());
    const apiKey = 'demo-enterprise';
    await gateway.execute({ document: '{ pets { id } sold: pets(status: SOLD) { id } }', apiKey });
    await gateway.execute({ document: '{ pending: pets(status: PENDING) { id } }', apiKey });
    const { data } = await gateway.execute({ document: '{ rateLimit { plan windows { limit used } } }', apiKey });
    const windows = [
      { limit: 5_000, used: 3 },
      { limit: 1_000_000, used: 3 },
    ];
    expect(data).toEqual({ rateLimit: { plan: '5000/1000000', windows } });
  });

  test("are on every response with the sandbox's date, and every call but a rejected one counts", async () => {
    await using sandbox = await startTestSandbox();
    const answers = [
      await sandbox.call('GET /pets'),
      await sandbox.call('GET /pets?limit=0'),
      await sandbox.call('GET /pets/700'),
      await sandbox.call('POST /pets', { body: '{"name":"Ada","categoryId":1}' }),
      await sandbox.call('POST /pets', { body: '{}' }),
      await sandbox.call('DELETE /pets'),
      await sandbox.call('GET /orders'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 404, 201, 400, 405, 404]);
    expect(answers.map(rateLimit)).toEqual(answers.map((_, index) => [60, 59 - index, MINUTE]));
    const dates = new Set(answers.map(({ headers }) => headers.get('date')));
    expect(dates).toEqual(new Set(['Mon, 05 Jan 2026 10:30:15 GMT']));
  });

  test('say 0 and now without a valid key', async () => {
    await using sandbox = await startTestSandbox();
    for (const key of [null, '', 'no-such-key', 'toString', 'demo-free demo-free']) {
      const answer = await sandbox.call('GET /orders', { key });
      expect([answer.status, answer.body.code]).toEqual([401, 'unauthorized']);
      expect(rateLimit(answer)).toEqual([0, 0, START_MS / 1000]);
    }
    expect(await callTimes(sandbox, 1)).toEqual([[60, 59, MINUTE]]);
  });
});

test('a call over the minute is a 429 with the seconds until the next one; it counts nowhere and adds nothing', async () => {
  await using sandbox = await startTestSandbox({ ...small(2, 4), pets: [] });
  await callTimes(sandbox, 2);
  const answer = await sandbox.call('POST /pets', { body: '{"name":"Ada","categoryId":1}' });
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '45']);
  expect(answer.body).toEqual({ code: 'rate_limited', message: expect.stringContaining('45 seconds'), status: 429 });
  expect(rateLimit(answer)).toEqual([2, 0, MINUTE]);
  sandbox.clock.nowMs = END_OF_MINUTE_MS - 1;
  expect((await sandbox.call('GET /pets')).headers.get('retry-after')).toBe('1');
  sandbox.clock.nowMs = END_OF_MINUTE_MS;
  expect((await sandbox.call('GET /pets')).body).toEqual([]);
  expect(await callTimes(sandbox, 1)).toEqual([[2, 0, MINUTE + 60]]);
  const overDay = await sandbox.call('GET /pets');
  expect([overDay.status, overDay.headers.get('retry-after')]).toEqual([429, String(MIDNIGHT - MINUTE)]);
  expect(rateLimit(overDay)).toEqual([4, 0, MIDNIGHT]);
  sandbox.clock.nowMs = MIDNIGHT * 1000;
  expect((await sandbox.call('GET /pets')).status).toBe(200);
});

test('each key is counted separately', async () => {
  await using sandbox = await startTestSandbox();
  await callTimes(sandbox, 61);
  expect(rateLimit(await sandbox.call('GET /pets', { key: 'demo-pro' }))).toEqual([300, 299, MINUTE]);
});

describe('a key that keeps calling after a 429', () => {
  test('is banned for five minutes at its tenth rejection, and then has ten again', async () => {
    await using sandbox = await startTestSandbox(small(2, 1_000));
    expect(await statuses(sandbox, 12)).toEqual([200, 200, ...REJECTED, 403]);
    const { status, headers, body } = await sandbox.call('GET /pets');
    expect([status, body.code, headers.get('retry-after')]).toEqual([403, 'key_banned', '300']);
    sandbox.clock.nowMs += BAN_MS - 1;
    expect(await statuses(sandbox, 1)).toEqual([403]);
    sandbox.clock.nowMs += 1;
    expect(await statuses(sandbox, 12)).toEqual([200, 200, ...REJECTED, 403]);
  });

  test('is not banned for nine calls too many in each minute', async () => {
    await using sandbox = await startTestSandbox(small(2, 1_000));
    for (let minute = 0; minute < 3; minute += 1) {
      expect(await statuses(sandbox, 11)).toEqual([200, 200, ...REJECTED]);
      sandbox.clock.nowMs += MINUTE_MS;
    }
  });
});

function small(perMinute: number, perDay: number) {
  return { keys: { 'demo-free': { perMinute, perDay } } };
}

async function callTimes(sandbox: TestSandbox, times: number): Promise<(readonly number[])[]> {
  const answers: SandboxAnswer[] = [];
  for (let call = 0; call < times; call += 1) answers.push(await sandbox.call('GET /pets?limit=1'));
  return answers.map(rateLimit);
}

async function statuses(sandbox: TestSandbox, times: number): Promise<number[]> {
  const answered: number[] = [];
  for (let call = 0; call < times; call += 1) answered.push((await sandbox.call('GET /pets?limit=1')).status);
  return answered;
}

function rateLimit({ headers }: SandboxAnswer): readonly number[] {
  return ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN));
}
