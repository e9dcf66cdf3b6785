import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RedisAway } from '../../src/store/redis.ts';
import { createOwnTime, insist } from '../../src/throttle/insist.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('whoever insists as everything is closed gives up, and leaves no timer behind', async () => {
  const ownTime = createOwnTime();
  let tries = 0;
  const insisting = insist(
    () => {
      tries += 1;
      return Promise.reject(new RedisAway('closed'));
    },
    { ownTime },
  );
  const ended = insisting.catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(100);
  ownTime.close();
  const before = tries;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await ended).toBeInstanceOf(RedisAway);
  expect(tries - before).toBeLessThanOrEqual(1);
  expect(vi.getTimerCount()).toBe(0);
});
