import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PLANS } from '../../src/plan.ts';
import { exchange, newLedgerState } from '../../src/throttle/ledger-state.ts';
import { readState } from '../../src/throttle/kept-state.ts';
import type { Exchange } from '../../src/throttle/ledger.ts';
import { createRedisLedger } from '../../src/throttle/redis-ledger.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { redisIsHere } from '../support/redis-server.ts';
import { useRedis } from '../support/redis-store.ts';
import { mutilated, mutilations, usedState } from './mutilated.ts';

const rules = { plan: { ...PLANS.free, known: true }, probeMs: 5_000 };
const NOW = Date.UTC(2026, 10, 21, 12);
const LATER = NOW + 1_000;

const real = useRedis();

const SET = { name: 'testSet', source: `redis.call('SET', KEYS[1], ARGV[1]) return ''` };
const PUSH = { name: 'testPush', source: `redis.call('LPUSH', KEYS[1], 'x') return ''` };
const GET = { name: 'testGet', source: `return redis.call('GET', KEYS[1]) or ''` };

/** A ledger in whose Redis this is kept of the key. */
async function resume(text: string, script = SET) {
  const key = randomUUID();
  await real.redis.run(script, `petql:ledger:${key}`, text);
  let nowMs = LATER;
  const { log, lines } = createMemoryLog();
  const nameOf = (apiKey: string) => apiKey;
  const ledger = createRedisLedger({ redis: real.redis, rules, nameOf, replica: 'one', now: () => nowMs, log });
  return {
    key,
    lines,
    ask: (request: Partial<Exchange> = {}) => ledger.exchange(key, { reports: [], wanted: 3, ...request }),
    kept: () => real.redis.run(GET, `petql:ledger:${key}`),
    skip: (forMs: number) => (nowMs += forMs),
  };
}

/** Such a state as the script keeps. */
function keptState(): Record<string, unknown> {
  const { replicas: _replicas, ...state } = usedState(rules, NOW);
  const { leastLeft: _ofMinute, ...minute } = state.minute;
  const { leastLeft: _ofDay, ...day } = state.day;
  const reply = { id: 'a', granted: 1, firstStart: 5, countedBefore: 4, grantedAtMs: NOW, probe: false };
  return { ...state, minute, day, format: 1, replies: { other: reply } };
}

describe.skipIf(!redisIsHere)('in Redis', () => {
  // Whatever failed in the script was taken for a Redis that is away, by which every key had but a share of its plan.
  test('whatever is kept of a key, every exchange is answered', async () => {
    const state = keptState();
    await fc.assert(
      fc.asyncProperty(mutilations(state), async (changes) => {
        const { ask, skip } = await resume(mutilated(state, changes));
        for (let call = 0; call < 3; call += 1) {
          const { grants, closed } = await ask();
          expect(grants.length > 0 || closed !== undefined).toBe(true);
          await ask({ wanted: 0, reports: grants.map((grant) => ({ kind: 'answered', grant, readings: [] })) });
          skip(20_000);
        }
      }),
      { numRuns: Number(process.env['FUZZ_RUNS'] ?? 500) },
    );
  });

  test('a state that was mutilated is read as from a file', async () => {
    const { replies: _replies, format: _format, ...state } = keptState();
    await fc.assert(
      fc.asyncProperty(mutilations(state), async (changes) => {
        // An empty list and an empty table are the same to Lua, and its JSON has fourteen digits.
        fc.pre(!changes.some(([, value]) => Array.isArray(value) || value === 1e17));
        const text = mutilated(state, changes);
        const { ask } = await resume(text);
        const { state: read } = readState(text, newLedgerState('anew', rules));
        const inMemory = exchange(read, { reports: [], wanted: 3 }, rules, LATER);
        const inRedis = await ask();
        const comparable = { generation: '', grants: inMemory.grants.length };
        expect({ ...inRedis, ...comparable, grants: inRedis.grants.length }).toEqual({ ...inMemory, ...comparable });
      }),
      { numRuns: Number(process.env['FUZZ_RUNS'] ?? 500) },
    );
  });

  test.each<[string, string]>([
    ...['null', '[]', '7', '"x"', 'xx', '', '{}', '{"a":'].map((text): [string, string] => [`"${text}"`, text]),
    ['what is nested too deep', '['.repeat(5_000) + ']'.repeat(5_000)],
    [
      'a state with a number beyond all in a field that is not known',
      mutilated({ ...keptState(), x: 7 }, []).replace('"x":7', '"x":1e999'),
    ],
  ])('a key of which %s is kept is put right by the first who looks, and the log says so', async (_name, text) => {
    const { ask, lines, key } = await resume(text);
    await ask({ wanted: 0 });
    await ask({ wanted: 0 });
    expect((await ask()).grants).toMatchObject([{ probe: true }]);
    expect(lines).toMatchObject([{ level: 40, msg: expect.stringContaining('made no sense') }]);
    expect(JSON.stringify(lines)).not.toContain(key);
  });

  test('a key under which there is no text is put right too', async () => {
    const { ask, kept } = await resume('', PUSH);
    expect((await ask()).grants).toMatchObject([{ probe: true }]);
    expect(JSON.parse(await kept())).toMatchObject({ started: 1 });
  });

  test('a pause of longer than there can be does no harm to what is kept', async () => {
    const { ask } = await resume(JSON.stringify({ ...keptState(), pausedUntilMs: 1e18 }));
    expect(await ask()).toMatchObject({ closed: 'paused' });
  });

  test('a state of before there were formats goes on, and has one then', async () => {
    const { format: _format, replies: _replies, ...state } = keptState();
    const { ask, kept } = await resume(JSON.stringify({ ...state, added: 'later' }));
    expect(await ask({ wanted: 1 })).toMatchObject({ generation: 'of before', started: 6, minute: { mode: 'told' } });
    expect(JSON.parse(await kept())).toMatchObject({ format: 1, started: 6, added: 'later' });
  });

  // Two versions side by side, each beginning anew what the other keeps, would spend the plan twice.
  test('a state of a newer petql is left alone as long as that uses it, and no longer', async () => {
    const text = JSON.stringify({ ...keptState(), format: 2, minute: 'of another kind' });
    const { ask, kept, lines, skip } = await resume(text);
    for (let second = 0; second < 100; second += 1) {
      expect(await ask()).toMatchObject({ grants: [], closed: 'paused', waitMs: 1_000, generation: '' });
      skip(1_000);
    }
    expect(await kept()).toBe(text);
    expect(lines).toMatchObject([{ msg: expect.stringContaining('newer petql') }]);
    skip(20_000);
    expect(await ask()).toMatchObject({ grants: [{ probe: true }] });
    expect(JSON.parse(await kept())).toMatchObject({ format: 1 });
  });
});
