import { expect, test } from 'vitest';
import { post } from '../support/client.ts';
import { startPetql } from '../support/run-petql.ts';

/** Little more than petql takes when it has started, so that documents that pile up soon end it. */
const SMALL_HEAP = ['--max-old-space-size=56', '--max-semi-space-size=2'];
const AT_ONCE = 20;

/** Short documents by what is wrong with them, if anything. */
const DOCUMENTS: [code: string, of: (count: number) => string][] = [
  ['GRAPHQL_VALIDATION_FAILED', (count) => `{a${count}}`],
  ['GRAPHQL_PARSE_FAILED', (count) => `{a${count}`],
  ['LIMIT_EXCEEDED', (count) => `{a${count}${'{b'.repeat(20)}${'}'.repeat(21)}`],
  ['OK', (count) => `{a${count}:__typename}`],
];

test('two thousand different documents without an API key are answered within a small heap', async () => {
  const petql = await startPetql(['--port', '0', '--log-level', 'silent'], {
    nodeOptions: SMALL_HEAP,
  });
  try {
    for (const [code, documentOf] of DOCUMENTS) {
      for (let sent = 0; sent < 500; sent += AT_ONCE) {
        const documents = Array.from({ length: AT_ONCE }, (_, index) => documentOf(sent + index));
        const answers = await Promise.all(
          documents.map((document) => post(petql.address, document, { headers: { authorization: null } })),
        );
        expect(answers.map(({ errors }) => errors?.[0]?.extensions.code ?? 'OK')).toEqual(documents.map(() => code));
      }
    }
  } finally {
    petql.kill('SIGTERM');
  }
  expect(await petql.exited).toBe(0);
});
