import { expect, test } from 'vitest';
import { createCompiledTexts } from '../../src/server/compiled-texts.ts';

const TEXT = () => 'null';

test('what was compiled is found again, for its own operation and outcome alone', () => {
  const texts = createCompiledTexts();
  const [one, other] = [texts.forOperation(), texts.forOperation()];
  one.set('10', TEXT, 3);
  expect(one.get('10')).toBe(TEXT);
  expect(one.get('01')).toBeUndefined();
  expect(other.get('10')).toBeUndefined();
});

test('however many outcomes of however many operations there are, so many fields are kept', () => {
  const texts = createCompiledTexts(1_000);
  const operations = Array.from({ length: 100 }, () => texts.forOperation());
  for (const operation of operations)
    for (let outcome = 0; outcome < 16; outcome += 1) operation.set(String(outcome), TEXT, 99);
  const kept = operations.flatMap((operation) =>
    Array.from({ length: 16 }, (_, outcome) => operation.get(String(outcome))),
  );
  expect(kept.filter(Boolean)).toHaveLength(10);
  // The last ones.
  expect(kept.at(-1)).toBe(TEXT);
});
