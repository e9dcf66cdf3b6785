import { expect, test } from 'vitest';
import { steadyTime, systemSlept } from '../src/clock.ts';

/** A machine whose clocks stand, until something moves them. */
function machine() {
  let [nowMs, elapsedMs, sleptMs] = [1_000_000, 500, 7_000];
  const time = steadyTime({ now: () => nowMs, elapsed: () => elapsedMs }, () => sleptMs);
  return {
    time,
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

test('steady time goes on while the machine sleeps, and whoever sets its clock does not move it', () => {
  const { time, wait, sleep, setClock } = machine();
  const startMs = time();
  wait(2_000);
  setClock(-3_600_000);
  expect(time() - startMs).toBe(2_000);
  sleep(32_400_000);
  wait(1_500);
  expect(time() - startMs).toBe(32_403_500);
  sleep(60_000);
  wait(1_000);
  expect(time() - startMs).toBe(32_464_500);
});

test('clocks that differ a little are no sleep', () => {
  const { time, wait, sleep } = machine();
  const startMs = time();
  for (let second = 0; second < 3; second += 1) {
    sleep(1_000);
    wait(1_000);
    expect(time() - startMs).toBe(1_000 * (second + 1));
  }
});

test('a machine that is awake sleeps no time', async () => {
  const before = systemSlept();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(Math.abs(systemSlept() - before)).toBeLessThan(2_000);
});
