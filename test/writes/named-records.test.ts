import { expect, test } from 'vitest';
import { createNamedRecords } from '../../src/caller/named-records.ts';
import type { Records } from '../../src/store/records.ts';
import { openStateFile } from '../../src/store/state-file.ts';
import { createCallerNames } from '../../src/throttle/caller-names.ts';

const NAME = 'an-api-key momo-1';
const INPUT = '["Momo","3",null]';
const ATTEMPT = { id: 'a', input: INPUT, leaseMs: 5_000 };

/** Records that note what they are given, but for what came of it. */
function overheard(records: Records) {
  const heard: string[] = [];
  const hears =
    <Given extends unknown[], T>(ask: (...given: Given) => T) =>
    (...given: Given) => {
      heard.push(JSON.stringify(given));
      return ask(...given);
    };
  const { find, begin, settle, release } = records;
  return {
    heard,
    records: { ...records, find: hears(find), begin: hears(begin), settle: hears(settle), release: hears(release) },
  };
}

test('neither the API key, nor the key of its own, nor the input comes to the store', async () => {
  const { heard, records } = overheard(openStateFile(':memory:', Date.now).records);
  const named = createNamedRecords(records, createCallerNames('a secret of the test'));
  await named.find(NAME, INPUT);
  await named.begin(NAME, ATTEMPT);
  await named.settle(NAME, ATTEMPT, '{}');
  await named.release(NAME, ATTEMPT);
  expect(heard).toHaveLength(4);
  expect(heard.join()).not.toMatch(/an-api-key|momo/i);
});

// Whoever runs another version finds what this one has kept, and this one what another has.
test('what is kept is found under the names that it has always had', async () => {
  const { records } = openStateFile(':memory:', Date.now);
  const nameOf = createCallerNames('a secret of the test');
  const named = createNamedRecords(records, nameOf);
  await named.begin(NAME, ATTEMPT);
  const kept = await records.find(`${nameOf('an-api-key')}:${nameOf(NAME)}`, nameOf(`${NAME} ${INPUT}`));
  expect(kept).toMatchObject({ isSame: true, outcome: undefined });
});

test('what was begun under one secret is settled and found under another', async () => {
  const { records } = openStateFile(':memory:', Date.now);
  let nameOf = createCallerNames('the secret of before');
  const named = createNamedRecords(records, (apiKey) => nameOf(apiKey));
  await named.begin(NAME, ATTEMPT);
  nameOf = createCallerNames('the secret that is agreed on now');
  expect(await named.find(NAME, INPUT)).toBeUndefined();
  await named.settle(NAME, ATTEMPT, '"ours"');
  expect(await named.find(NAME, INPUT)).toMatchObject({ isSame: true, outcome: '"ours"' });
  expect(await named.find(NAME, '["Mono","3",null]')).toMatchObject({ isSame: false });
});
