import { describe, expect, test } from 'vitest';
import { START_MS, startTestSandbox } from './start-test-sandbox.ts';
import type { SandboxAnswer, TestSandbox } from './start-test-sandbox.ts';

const END_OF_MINUTE_MS = Date.UTC(2026, 0, 5, 10, 31);
const MIDNIGHT_MS = Date.UTC(2026, 0, 6);

const MINUTE = END_OF_MINUTE_MS / 1000;
const MIDNIGHT = MIDNIGHT_MS / 1000;

function small(perMinute: number, perDay: number) {
  return { keys: { 'demo-free': { name: 'small', perMinute, perDay } } };
}

describe('the rate-limit headers', () => {
  test('count down with each call and start again with the next minute', async () => {
    await using sandbox = await startTestSandbox();
    expect(await callTimes(sandbox, 3)).toEqual([
      [60, 59, MINUTE],
      [60, 58, MINUTE],
      [60, 57, MINUTE],
    ]);
    sandbox.clock.nowMs = END_OF_MINUTE_MS;
    expect(await callTimes(sandbox, 1)).toEqual([[60, 59, MINUTE + 60]]);
  });

  test('tell of the day once it has fewer requests left than the minute', async () => {
    await using sandbox = await startTestSandbox(small(4, 6));
    await callTimes(sandbox, 1);
    sandbox.clock.nowMs = END_OF_MINUTE_MS;
    expect(await callTimes(sandbox, 2)).toEqual([
      [4, 3, MINUTE + 60],
      [4, 2, MINUTE + 60],
    ]);
    sandbox.clock.nowMs = END_OF_MINUTE_MS + 60_000;
    expect(await callTimes(sandbox, 3)).toEqual([
      [6, 2, MIDNIGHT],
      [6, 1, MIDNIGHT],
      [6, 0, MIDNIGHT],
    ]);
  });

  test('tell of the minute when both windows have the same left', async () => {
    await using sandbox = await startTestSandbox(small(3, 3));
    expect(await callTimes(sandbox, 1)).toEqual([[3, 2, MINUTE]]);
  });

  test('are on every answer, and every answer to a valid key but a refusal is counted', async () => {
    await using sandbox = await startTestSandbox();
    const answers = [
      await sandbox.call('GET /pets'),
      await sandbox.call('GET /pets?limit=0'),
      await sandbox.call('GET /pets/7'),
      await sandbox.call('GET /pets/700'),
      await sandbox.call('POST /pets', { body: '{"name":"Ada","categoryId":1}' }),
      await sandbox.call('POST /pets', { body: '{}' }),
      await sandbox.call('POST /pets', { body: ' '.repeat(1_048_577) }),
      await sandbox.call('DELETE /pets'),
      await sandbox.call('GET /orders'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 404, 201, 400, 413, 405, 404]);
    expect(answers.map(rateLimit)).toEqual(answers.map((_, index) => [60, 59 - index, MINUTE]));
  });

  test('say 0 and now without a valid key, whose calls are counted against no plan', async () => {
    await using sandbox = await startTestSandbox();
    for (const key of [null, '', 'no-such-key', 'toString', 'demo-free demo-free']) {
      const answer = await sandbox.call('GET /pets', { key });
      expect([answer.status, answer.body.code, rateLimit(answer)]).toEqual([
        401,
        'unauthorized',
        [0, 0, START_MS / 1000],
      ]);
    }
    expect(await callTimes(sandbox, 1)).toEqual([[60, 59, MINUTE]]);
  });
});

describe('a call past the limit', () => {
  test('of the minute is a 429 that says when the next minute starts', async () => {
    await using sandbox = await startTestSandbox();
    await callTimes(sandbox, 60);
    const answer = await sandbox.call('GET /pets');
    expect(answer.status).toBe(429);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.headers.get('retry-after')).toBe('45');
    expect(answer.body).toEqual({ code: 'rate_limited', message: expect.stringContaining('45 seconds'), status: 429 });
    expect(rateLimit(answer)).toEqual([60, 0, MINUTE]);

    sandbox.clock.nowMs = END_OF_MINUTE_MS - 1;
    expect((await sandbox.call('GET /pets')).headers.get('retry-after')).toBe('1');
    sandbox.clock.nowMs = END_OF_MINUTE_MS;
    expect((await sandbox.call('GET /pets')).status).toBe(200);
  });

  test('of the day is a 429 that says when the next day starts in UTC', async () => {
    await using sandbox = await startTestSandbox(small(4, 6));
    await callTimes(sandbox, 4);
    sandbox.clock.nowMs = END_OF_MINUTE_MS;
    await callTimes(sandbox, 2);
    const answer = await sandbox.call('GET /pets');
    expect(answer.status).toBe(429);
    expect(answer.headers.get('retry-after')).toBe(String(MIDNIGHT - MINUTE));
    expect(rateLimit(answer)).toEqual([6, 0, MIDNIGHT]);

    sandbox.clock.nowMs = MIDNIGHT_MS - 1;
    expect((await sandbox.call('GET /pets')).status).toBe(429);
    sandbox.clock.nowMs = MIDNIGHT_MS;
    expect((await sandbox.call('GET /pets')).status).toBe(200);
  });

  test('of the minute and of the day is a 429 until the day ends', async () => {
    await using sandbox = await startTestSandbox(small(2, 4));
    await callTimes(sandbox, 2);
    sandbox.clock.nowMs = END_OF_MINUTE_MS;
    await callTimes(sandbox, 2);
    const answer = await sandbox.call('GET /pets');
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, String(MIDNIGHT - MINUTE)]);
    // All of it tells of one window; the limit was once the minute's beside the day's reset.
    expect(rateLimit(answer)).toEqual([4, 0, MIDNIGHT]);
  });

  test.for([
    [44_999, '45'],
    [1_001, '2'],
    [1_000, '1'],
    [1, '1'],
  ] as const)('%s ms before the next minute is told to wait for whole seconds: %s', async ([leftMs, seconds]) => {
    await using sandbox = await startTestSandbox(small(1, 10));
    sandbox.clock.nowMs = END_OF_MINUTE_MS - leftMs;
    await callTimes(sandbox, 1);
    expect((await sandbox.call('GET /pets')).headers.get('retry-after')).toBe(seconds);
  });

  test('is not counted: the day has lost nothing by it', async () => {
    await using sandbox = await startTestSandbox(small(2, 3));
    await callTimes(sandbox, 5);
    sandbox.clock.nowMs = END_OF_MINUTE_MS;
    expect(await callTimes(sandbox, 1)).toEqual([[3, 0, MIDNIGHT]]);
  });

  test('adds no animal', async () => {
    await using sandbox = await startTestSandbox({ ...small(1, 10), seeds: [] });
    await callTimes(sandbox, 1);
    expect((await sandbox.call('POST /pets', { body: '{"name":"Ada","categoryId":1}' })).status).toBe(429);
    sandbox.clock.nowMs = END_OF_MINUTE_MS;
    expect((await sandbox.call('GET /pets')).body).toEqual([]);
  });
});

test("every answer is dated by the sandbox's clock", async () => {
  await using sandbox = await startTestSandbox(small(1, 10));
  for (const [key, status] of [
    ['demo-free', 200],
    ['demo-free', 429],
    ['no-such-key', 401],
  ] as const) {
    const answer = await sandbox.call('GET /pets', { key });
    expect([answer.status, answer.headers.get('date')]).toEqual([status, 'Mon, 05 Jan 2026 10:30:15 GMT']);
  }
});

test('each key has counts of its own', async () => {
  await using sandbox = await startTestSandbox();
  await callTimes(sandbox, 61);
  expect(rateLimit(await sandbox.call('GET /pets', { key: 'demo-pro' }))).toEqual([300, 299, MINUTE]);
});

test('a key has counts of its own at the staging address', async () => {
  await using sandbox = await startTestSandbox();
  await callTimes(sandbox, 61);
  const answer = await sandbox.call('GET /pets', { staging: true });
  expect([answer.status, rateLimit(answer)]).toEqual([200, [60, 59, MINUTE]]);
});

/** The rate-limit headers of so many calls, one after the other. */
async function callTimes(sandbox: TestSandbox, times: number): Promise<(readonly number[])[]> {
  const answers: SandboxAnswer[] = [];
  for (let call = 0; call < times; call += 1) answers.push(await sandbox.call('GET /pets?limit=1'));
  return answers.map(rateLimit);
}

function rateLimit({ headers }: SandboxAnswer): readonly number[] {
  return ['limit', 'remaining', 'reset'].map((name) => Number(headers.get(`x-ratelimit-${name}`) ?? Number.NaN));
}
