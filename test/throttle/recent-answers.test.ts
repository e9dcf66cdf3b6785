import { expect, test } from 'vitest';
import { createRecentAnswers } from '../../src/throttle/recent-answers.ts';

const HOUR_MS = 3_600_000;

test('what was answered half a day ago is not counted on: a day that slides lets go of it', () => {
  let nowMs = 5_000;
  const answers = createRecentAnswers({ elapsed: () => nowMs });
  answers.add();
  answers.add();
  expect(answers.count()).toBe(2);
  nowMs += 12 * HOUR_MS;
  expect(answers.count()).toBe(0);
  answers.add();
  nowMs += 12 * HOUR_MS - 1;
  expect(answers.count()).toBe(1);
});
