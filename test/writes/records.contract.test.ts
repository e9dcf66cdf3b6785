import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createRedisRecords } from '../../src/store/redis-records.ts';
import type { Records } from '../../src/store/records.ts';
import { openStateFile } from '../../src/store/state-file.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';
import { until } from '../support/until.ts';

const real = useRedis();

const STORES: [string, boolean, () => Records][] = [
  ['in memory', true, () => openStateFile(':memory:', Date.now).records],
  ['in Redis', redisIsHere, () => createRedisRecords(real.redis)],
];

for (const [place, isHere, open] of STORES) {
  describe.skipIf(!isHere)(`records ${place}`, () => {
    const attempt = (id: string, leaseMs = 60_000) => ({ id, input: `input of ${id}`, leaseMs });

    test('know nothing of a name before an attempt begins', async () => {
      expect(await open().find(randomUUID(), 'input')).toBeUndefined();
    });

    test('let one attempt begin, and tell the others that the name is taken', async () => {
      const [records, name] = [open(), randomUUID()];
      const begun = await Promise.all(['a', 'b', 'c'].map((id) => records.begin(name, attempt(id))));
      expect(begun.map(({ kind }) => kind).toSorted()).toEqual(['begun', 'taken', 'taken']);
      const kept = await records.find(name, 'input of a');
      expect(kept?.isSame).toBe(true);
      expect(kept?.outcome).toBeUndefined();
      expect(kept?.openForMs).toBeGreaterThan(50_000);
      expect(kept?.openForMs).toBeLessThanOrEqual(60_000);
    });

    test('give the outcome that was settled, and let nobody else settle or release it', async () => {
      const [records, name] = [open(), randomUUID()];
      await records.begin(name, attempt('a'));
      await records.settle(name, attempt('b'), '"theirs"');
      await records.release(name, attempt('b'));
      expect((await records.find(name, 'input of a'))?.outcome).toBeUndefined();
      await records.settle(name, attempt('a'), '"ours"');
      expect(await records.find(name, 'input of a')).toEqual({
        isSame: true,
        outcome: '"ours"',
        openForMs: expect.any(Number),
      });
      expect(await records.begin(name, attempt('b'))).toEqual({ kind: 'taken' });
    });

    test('tell another input from the one that was submitted, while it is under way and after it', async () => {
      const [records, name] = [open(), randomUUID()];
      await records.begin(name, attempt('a'));
      const areSame = async () => {
        const found = await Promise.all(['input of a', 'input of b'].map((input) => records.find(name, input)));
        return found.map((kept) => kept?.isSame);
      };
      expect(await areSame()).toEqual([true, false]);
      await records.settle(name, attempt('a'), '"ours"');
      expect(await areSame()).toEqual([true, false]);
    });

    test('are free again when they are released', async () => {
      const [records, name] = [open(), randomUUID()];
      await records.begin(name, attempt('a'));
      await records.release(name, attempt('a'));
      expect(await records.find(name, 'input of a')).toBeUndefined();
      expect(await records.begin(name, attempt('b'))).toEqual({ kind: 'begun' });
    });

    test('say when nothing more can come of an attempt', async () => {
      const [records, name] = [open(), randomUUID()];
      await records.begin(name, attempt('a', 1));
      await until(async () => (await records.find(name, 'input of a'))?.openForMs === 0);
      expect(await records.begin(name, attempt('b'))).toEqual({ kind: 'taken' });
    });

    test('take an outcome whose record was lost', async () => {
      const [records, name] = [open(), randomUUID()];
      await records.settle(name, attempt('a'), '"ours"');
      expect(await records.find(name, 'input of a')).toMatchObject({ isSame: true, outcome: '"ours"' });
    });
  });
}

test.skipIf(!redisIsHere)('a record in Redis lives for a day from its beginning', async () => {
  const [records, name] = [createRedisRecords(real.redis), randomUUID()];
  const attempt = { id: 'a', input: 'input', leaseMs: 60_000 };
  const leftMs = async () => Number(/^:(\d+)/.exec(await real.server.command('PTTL', `petql:record:${name}`))?.[1]);
  await records.begin(name, attempt);
  const atFirstMs = await leftMs();
  await records.settle(name, attempt, '"ours"');
  expect(atFirstMs).toBeGreaterThan(86_000_000);
  expect(await leftMs()).toBeLessThanOrEqual(atFirstMs);
  await real.server.command('DEL', `petql:record:${name}`);
  await records.settle(name, attempt, '"ours"');
  expect(await leftMs()).toBeGreaterThan(86_000_000);
});
