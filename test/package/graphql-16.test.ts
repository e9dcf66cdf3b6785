import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BESIDE_GRAPHQL_16, installConsumer } from './consumer-project.ts';
import type { ConsumerProject } from './consumer-project.ts';

const TSC = fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url));

let consumer: ConsumerProject;

// npm rejects packages whose peers contradict each other (ERESOLVE).
beforeAll(async () => {
  consumer = await installConsumer('graphql-16', BESIDE_GRAPHQL_16);
}, 300_000);
afterAll(() => consumer.remove());

test('petql runs in one process with Apollo Server and Mercurius, within the same bounds', async () => {
  const { code, output } = await consumer.run(process.execPath, 'beside.ts');
  expect([code, output.split('\n')]).toEqual([
    0,
    [
      'Apollo Server: {"shop":"Berlin","pets":[{"name":"Ada"}]}',
      'Mercurius: {"first":"Ada"}',
      'petql: {"pets":[{"name":"Ada"}]}',
      'an unknown name: "Cannot query field \\"petz\\" on type \\"Query\\"."',
      'a thicket: "comparisons"',
      'graphql: "16"',
      '',
    ],
  ]);
});

test('the types of petql compile there, strictly', async () => {
  await cp(join(import.meta.dirname, 'consumer/types.ts'), join(consumer.folder, 'types.ts'));
  expect(await consumer.run(TSC, '--ignoreConfig', ...STRICTLY, 'types.ts')).toEqual({ code: 0, output: '' });
  expect(await consumer.run(TSC, '-p', '.', '--skipLibCheck', '--singleThreaded')).toEqual({ code: 0, output: '' });
});

/** As somebody has it who checks libraries too. */
const STRICTLY = ['--strict', '--noEmit', '--module', 'node20', '--types', 'node', '--singleThreaded'];
