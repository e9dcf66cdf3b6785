import { expect, test } from 'vitest';
import { createRouteRest } from '../../src/caller/route-rest.ts';
import { createMemoryLog } from '../support/memory-log.ts';

const HOUR_MS = 3_600_000;

function start() {
  const time = { ms: 5_000 };
  const { log, lines } = createMemoryLog();
  const rest = createRouteRest('GET /pets/{petId}', { elapsed: () => time.ms }, log);
  /** Asks and is answered at once. */
  const ask = (isThere: boolean | undefined) => rest.asked()(isThere);
  /** How long until somebody may ask. */
  const restsForMs = () => {
    const fromMs = time.ms;
    while (!rest.mayAsk) time.ms += 500;
    return time.ms - fromMs;
  };
  return { time, rest, lines, ask, restsForMs };
}

test('a route that is not there rests for a second, and twice as long each time that it is still not there, up to an hour', () => {
  const { rest, ask, restsForMs } = start();
  const rests = Array.from({ length: 14 }, () => {
    ask(false);
    return restsForMs() / 1_000;
  });
  expect(rests).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 3_600, 3_600]);
  expect(rest.isOver).toBe(false);
});

test('an answer of the route ends the rest, and the next one takes a second again', () => {
  const { rest, ask, restsForMs } = start();
  for (let time = 0; time < 5; time += 1) {
    ask(false);
    restsForMs();
  }
  ask(true);
  expect([rest.isOver, rest.mayAsk]).toEqual([true, true]);
  ask(false);
  expect(restsForMs()).toBe(1_000);
});

test('of many that were under way at once, all count as one', () => {
  const { time, rest, restsForMs } = start();
  const answers = Array.from({ length: 10 }, () => rest.asked());
  for (const tell of answers.slice(0, 9)) tell(false);
  expect(restsForMs()).toBe(1_000);
  // The last one comes when the rest is over: it says nothing of what is there by now.
  answers[9]?.(false);
  expect(rest.mayAsk).toBe(true);
  rest.asked()(false);
  time.ms += 1_000;
  expect(restsForMs()).toBe(1_000);
});

test('one looks at a time, the next when that one knows nothing, or after a second without an answer', () => {
  const { rest, ask, restsForMs } = start();
  ask(false);
  restsForMs();
  const tell = rest.asked();
  expect(rest.mayAsk).toBe(false);
  tell(undefined);
  expect(rest.mayAsk).toBe(true);
  const late = rest.asked();
  expect(restsForMs()).toBe(1_000);
  rest.asked();
  late(true);
  expect([rest.isOver, rest.mayAsk]).toEqual([true, true]);
});

test('while the route works any number may ask', () => {
  const { rest, ask } = start();
  for (let one = 0; one < 3; one += 1) {
    rest.asked();
    ask(undefined);
    expect(rest.mayAsk).toBe(true);
  }
});

test('the log tells when a rest begins and when the route is there again, and no more of a route that comes and goes', () => {
  const { time, lines, ask, restsForMs } = start();
  const goes = () => {
    ask(false);
    restsForMs();
  };
  goes();
  goes();
  ask(true);
  expect(lines.map(({ level }) => level)).toEqual([40, 30]);
  for (let round = 0; round < 10; round += 1) {
    goes();
    ask(true);
  }
  expect(lines).toHaveLength(2);
  time.ms += HOUR_MS;
  goes();
  ask(true);
  expect(lines.map(({ level }) => level)).toEqual([40, 30, 40, 30]);
});
