import { parse } from 'graphql';
import { expect, test } from 'vitest';
import { schema } from '../../src/schema/schema.ts';
import { createPreparation } from '../../src/server/prepared-operations.ts';
import { createTextMemory } from '../../src/server/text-memory.ts';

test('what is prepared for costly documents is bounded by what the documents take', () => {
  const checked: string[] = [];
  const prepared = createPreparation({
    schema,
    limits: { maxTokens: 5_000 },
    checkedDocument({ query }) {
      checked.push(query);
      return parse(query);
    },
    callLimit: { concerns: () => false } as any,
    memory: createTextMemory(),
    rememberedAnswers: { forOperation: () => ({}) as any },
  });
  const document = (index: number) => `query q${index} { pets { ${'id '.repeat(1_200)} } }`;
  const ask = (index: number) =>
    prepared(Buffer.from(JSON.stringify({ query: document(index), operationName: `q${index}` })));
  // Each twice: what comes once is not kept at all.
  for (let index = 0; index < 300; index += 1) for (let time = 0; time < 2; time += 1) ask(index);
  checked.length = 0;
  for (const index of [299, 0]) expect(ask(index)?.definition.name?.value).toBe(`q${index}`);
  expect(checked).toEqual([document(0)]);
});
