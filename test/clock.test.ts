import { uptime } from 'node:os';
import { expect, test, vi } from 'vitest';
import { countingSleep, steadyTime, systemClock } from '../src/clock.ts';

vi.mock(import('node:os'), async (original) => {
  const os = await original();
  return { ...os, uptime: vi.fn<typeof os.uptime>(os.uptime) };
});

/** A machine whose clocks stand, until something moves them. */
function machine() {
  let [nowMs, elapsedMs, sleptMs] = [1_000_000, 500, 7_000];
  let looks = 0;
  const machineMs = () => {
    looks += 1;
    return elapsedMs + sleptMs;
  };
  return {
    clock: countingSleep({ now: () => nowMs, elapsed: () => elapsedMs }, machineMs),
    looks: () => looks,
    wait: (ms: number) => {
      nowMs += ms;
      elapsedMs += ms;
    },
    sleep: (ms: number) => {
      nowMs += ms;
      sleptMs += ms;
    },
    setClock: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('time goes on while the machine sleeps, and whoever sets its clock does not move it', () => {
  const { clock, wait, sleep, setClock } = machine();
  const time = steadyTime(clock);
  const [startMs, elapsedMs] = [time(), clock.elapsed()];
  const passed = () => [time() - startMs, clock.elapsed() - elapsedMs];
  wait(2_000);
  setClock(-3_600_000);
  expect(passed()).toEqual([2_000, 2_000]);
  sleep(32_400_000);
  wait(10);
  expect(passed()).toEqual([32_402_010, 32_402_010]);
  sleep(60_000);
  wait(10);
  expect(passed()).toEqual([32_462_020, 32_462_020]);
});

test('clocks that differ a little are no sleep', () => {
  const { clock, wait, sleep } = machine();
  const startMs = clock.elapsed();
  for (let second = 0; second < 3; second += 1) {
    sleep(1_000);
    wait(1_000);
    expect(clock.elapsed() - startMs).toBe(1_000 * (second + 1));
  }
});

test('nothing sets back what has gone by', () => {
  const { clock, wait, sleep } = machine();
  const startMs = clock.elapsed();
  sleep(60_000);
  wait(10);
  expect(clock.elapsed() - startMs).toBe(60_010);
  sleep(-60_000);
  wait(10);
  expect(clock.elapsed() - startMs).toBe(60_020);
});

test('the machine is asked a hundred times a second at most', () => {
  const { clock, looks, wait } = machine();
  const before = looks();
  for (let reading = 0; reading < 1_000; reading += 1) {
    wait(1);
    clock.elapsed();
  }
  expect(looks() - before).toBe(100);
});

test('where nobody knows how long the machine is up, time goes by as the process counts it', () => {
  let elapsedMs = 500;
  const own = { now: () => 1_000_000, elapsed: () => elapsedMs };
  vi.mocked(uptime)
    .mockImplementationOnce(() => {
      throw new Error('uv_uptime returned EPERM');
    })
    .mockImplementationOnce(() => 1_000_000);
  const clock = countingSleep(own);
  elapsedMs += 1_000;
  expect(clock.elapsed()).toBe(1_500);
});

test('a machine that is awake sleeps no time', async () => {
  const clock = countingSleep(systemClock);
  const before = clock.elapsed() - systemClock.elapsed();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(Math.abs(clock.elapsed() - systemClock.elapsed() - before)).toBeLessThan(2_000);
});
