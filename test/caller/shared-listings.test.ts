import { expect, test, vi } from 'vitest';
import { listingFact } from '../../src/caller/fact.ts';
import type { Fact } from '../../src/caller/fact.ts';
import { createSharedListings } from '../../src/caller/shared-listings.ts';
import type { CallerListings, SharedListings } from '../../src/caller/shared-listings.ts';
import { systemClock } from '../../src/clock.ts';
import { connectRedis } from '../../src/store/redis.ts';
import type { ChannelListener, RedisStore } from '../../src/store/redis.ts';
import { startFaultProxy } from '../faults/fault-proxy.ts';
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { modelPet } from './model-store.ts';

const PETS = [modelPet(1, 'available'), modelPet(2, 'sold')];

/** One replica's part for one caller, and what it has learnt from the others. */
interface Replica {
  readonly all: SharedListings;
  readonly listings: CallerListings;
  readonly learnt: Fact[];
  /** How often it has forgotten what it knew. */
  forgot(): number;
}

function join(redis: RedisStore, replica: string, works = () => true): Replica {
  const learnt: Fact[] = [];
  let forgot = 0;
  const all = createSharedListings({
    redis,
    nameOf: (apiKey) => apiKey,
    replica,
    keptMs: 60_000,
    clock: systemClock,
    works,
  });
  const listings = all.join('a key', {
    learn: (fact) => learnt.push(fact),
    wrote() {
      forgot += 1;
    },
  });
  return { all, listings, learnt, forgot: () => forgot };
}

// What Redis says crosses the word of a write: it is from before the write, whichever comes first.
test('a listing from before a write is not learnt after it', async () => {
  const answers: ((text: string) => void)[] = [];
  const redis: RedisStore = {
    connected: true,
    run: ({ name }) =>
      name === 'petqlSyncListings' ? new Promise((resolve) => answers.push(resolve)) : Promise.resolve(''),
    subscribe: () => () => {},
    close: () => {},
  };
  const { listings, learnt } = join(redis, 'one');
  const text = JSON.stringify({ pets: PETS, complete: true });
  const stored = (writes: string, asOfMs: number) =>
    JSON.stringify({ nowMs: 1_000, writes, younger: [{ name: 'all', asOfMs, text }] });
  const answer = async (writes: string, asOfMs: number) => {
    await expect.poll(() => answers.length).toBe(1);
    answers.pop()?.(stored(writes, asOfMs));
  };
  const syncing = listings.sync();
  await expect.poll(() => answers.length).toBe(1);
  await listings.wrote();
  const { writes } = listings;
  await answer('', 900);
  await syncing;
  expect(learnt).toEqual([]);
  expect(listings.writes).toBe(writes);

  const later = listings.sync();
  await answer(writes, 1_000);
  await later;
  expect(learnt).toHaveLength(1);
});

test('nor is it where Redis was away as the write was over', async () => {
  const answers: ((text: string) => void)[] = [];
  const redis: RedisStore = {
    connected: true,
    run: () => new Promise((resolve) => answers.push(resolve)),
    subscribe: () => () => {},
    close: () => {},
  };
  let works = true;
  const { all, listings, learnt } = join(redis, 'one', () => works);
  const syncing = listings.sync();
  await expect.poll(() => answers.length).toBe(1);
  works = false;
  await listings.wrote();
  const text = JSON.stringify({ pets: PETS, complete: true });
  answers[0]?.(JSON.stringify({ nowMs: 1_000, writes: '', younger: [{ name: 'all', asOfMs: 900, text }] }));
  await syncing;
  expect(learnt).toEqual([]);
  all.close();
});

test.each(['made here', 'told of by another replica'])(
  'what a Redis that came back older has from before a write %s is not learnt',
  async (which) => {
    const text = JSON.stringify({ pets: PETS, complete: true });
    let agesMs: Record<string, number> = { all: 50 };
    let channel: ChannelListener | undefined;
    const redis: RedisStore = {
      connected: true,
      run: ({ name }) => {
        const younger = Object.entries(agesMs).map(([listing, ageMs]) => ({
          name: listing,
          asOfMs: 100_000 - ageMs,
          text,
        }));
        // It knows of no write, as before the first one.
        return Promise.resolve(
          name === 'petqlSyncListings' ? JSON.stringify({ nowMs: 100_000, writes: '', younger }) : '',
        );
      },
      subscribe(_channel, listener) {
        channel = listener;
        return () => {};
      },
      close: () => {},
    };
    const { all, listings, learnt } = join(redis, 'one');
    await listings.sync();
    expect(learnt).toHaveLength(1);
    if (which === 'made here') await listings.wrote();
    else channel?.onMessage(JSON.stringify({ name: 'a key', writes: 'other 1', by: 'other' }));
    channel?.onGap();
    await listings.sync();
    await listings.sync();
    expect(learnt).toHaveLength(1);
    agesMs = { all: 50, sold: 0 };
    await listings.sync();
    expect(learnt.slice(1).map(({ call }) => call)).toEqual([{ kind: 'list', listing: 'sold' }]);
    all.close();
  },
);

test.skipIf(!redisIsHere)(
  'writes that may be kept and not told leave what is listed after them, and are told once they may be',
  async () => {
    const server = await startRedis();
    const mayTell = (...channels: string[]) =>
      server.command('ACL', 'SETUSER', 'petql', 'on', '>pw', '~petql:*', '+@all', 'resetchannels', ...channels);
    await mayTell();
    const url = server.url.replace('redis://', 'redis://petql:pw@');
    const stores = [url, url, server.url].map((address) => connectRedis({ url: address }));
    const [one, other, third] = stores.map((store, index) => join(store, `replica ${index}`)) as [
      Replica,
      Replica,
      Replica,
    ];
    await third.listings.sync();
    await one.listings.wrote();
    await other.listings.wrote();
    await other.listings.sync();
    const fact = listingFact('all', PETS, true, systemClock.elapsed() + 5);
    other.listings.share(fact, other.listings.writes);
    const kept = async () => (await server.command('HGETALL', 'petql:listings:a key')).trim();
    await expect.poll(kept).toContain('asOf all');
    const before = await kept();
    // Both go on telling meanwhile.
    await new Promise((resolve) => {
      setTimeout(resolve, 1_200);
    });
    expect(await kept()).toBe(before);
    await third.listings.sync();
    expect(third.learnt).toHaveLength(1);
    const forgotten = third.forgot();
    await mayTell('&petql:*');
    await expect.poll(third.forgot, { timeout: 5_000 }).toBe(forgotten + 2);
    for (const { all } of [one, other, third]) all.close();
    for (const store of stores) store.close();
    await server.close();
  },
);

test('a write that the others were told of is told once, whatever they write meanwhile', async () => {
  vi.useFakeTimers();
  const told: (() => void)[] = [];
  let hear = (_text: string) => {};
  const redis: RedisStore = {
    connected: true,
    run: () => new Promise((resolve) => told.push(() => resolve(''))),
    subscribe(_channel, listener) {
      hear = (text) => listener.onMessage(text);
      return () => {};
    },
    close: () => {},
  };
  const { all, listings } = join(redis, 'one');
  const wrote = listings.wrote();
  await vi.advanceTimersByTimeAsync(1);
  hear(JSON.stringify({ name: 'a key', writes: 'other 1', by: 'other' }));
  told[0]?.();
  await wrote;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(told).toHaveLength(1);
  all.close();
  vi.useRealTimers();
});

test.skipIf(!redisIsHere)(
  'what is as of later than now, since somebody set the clock of Redis back, is not learnt',
  async () => {
    const server = await startRedis();
    const stores = [0, 1].map(() => connectRedis({ url: server.url }));
    const [one, other] = stores.map((store, index) => join(store, `replica ${index}`)) as [Replica, Replica];
    await one.listings.sync();
    await server.command('HSET', 'petql:listings:a key', 'asOf all', String(Date.now() + 15_000), 'all', '{}');
    await other.listings.sync();
    expect(other.learnt).toEqual([]);
    const fact = listingFact('all', PETS, true, systemClock.elapsed());
    one.listings.share(fact, one.listings.writes);
    await expect
      .poll(async () => {
        await other.listings.sync();
        return other.learnt.length;
      })
      .toBe(1);
    for (const { all } of [one, other]) all.close();
    for (const store of stores) store.close();
    await server.close();
  },
);

test.skipIf(!redisIsHere)('no listing is taken for younger than it is, however slow Redis is', async () => {
  const server = await startRedis();
  const proxy = await startFaultProxy({ target: server.url });
  const stores = [0, 1].map(() => connectRedis({ url: proxy.url, timeoutMs: 5_000 }));
  const [one, other] = stores.map((store, index) => join(store, `replica ${index}`)) as [Replica, Replica];
  await one.listings.sync();
  proxy.setFault({ latencyMs: 150 });
  const fact = listingFact('all', PETS, true, systemClock.elapsed());
  one.listings.share(fact, one.listings.writes);
  await expect
    .poll(
      async () => {
        await other.listings.sync();
        return other.learnt.length;
      },
      { timeout: 10_000 },
    )
    .toBe(1);
  expect(other.learnt[0]?.asOfMs).toBeLessThanOrEqual(fact.asOfMs);
  for (const { all } of [one, other]) all.close();
  for (const store of stores) store.close();
  await proxy.close();
  await server.close();
});
