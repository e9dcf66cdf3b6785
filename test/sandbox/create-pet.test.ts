import { expect, test } from 'vitest';
import type { Int64 } from '../../src/int64.ts';
import { startTestSandbox } from './start-test-sandbox.ts';

const ADA = '{"name":"Ada","categoryId":1}';

test('an animal that is added without a status has none, then and later, and is in no filtered listing', async () => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  const { body } = await sandbox.call('POST /pets', { body: ADA });
  expect(body).toEqual({ id: 1, name: 'Ada', categoryId: 1 });
  expect((await sandbox.call('GET /pets/1')).body).toEqual(body);
  expect((await sandbox.call('GET /pets')).body).toEqual([body]);
  for (const status of ['available', 'pending', 'sold']) {
    expect((await sandbox.call(`GET /pets?status=${status}`)).body).toEqual([]);
  }
});

test('an id in the body, and fields that the contract does not know, are ignored', async () => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  const { status, body } = await sandbox.call('POST /pets', {
    body: '{"id":77,"tag":"x","name":"Ada","categoryId":1}',
  });
  expect([status, body]).toEqual([201, { id: 1, name: 'Ada', categoryId: 1 }]);
});

test.for(['9223372036854775807', '-9223372036854775808', '9007199254740993', '0', '-1'])(
  'category %s keeps every digit',
  async (categoryId) => {
    await using sandbox = await startTestSandbox({ seeds: [] });
    const added = await sandbox.call('POST /pets', { body: `{"name":"Ada","categoryId":${categoryId}}` });
    expect(String(added.body.categoryId)).toBe(categoryId);
    expect(String((await sandbox.call('GET /pets/1')).body.categoryId)).toBe(categoryId);
    expect(String((await sandbox.call('GET /pets')).body[0].categoryId)).toBe(categoryId);
  },
);

test('an animal whose id no double can hold is found by that id and by none beside it', async () => {
  await using sandbox = await startTestSandbox();
  expect((await sandbox.call('GET /pets/9007199254740993')).body).toEqual({
    id: 9007199254740993n,
    name: 'Methuselah',
    categoryId: 9007199254740995n,
    status: 'available',
  });
  expect((await sandbox.call('GET /pets/9007199254740992')).status).toBe(404);
});

test.for(['Ada', '猫 🐈', 'a "quoted" \\ name', ' padded ', 'x'.repeat(255), '🐈'.repeat(255)])(
  'the name %j is kept as it is',
  async (name) => {
    await using sandbox = await startTestSandbox({ seeds: [] });
    expect((await sandbox.call('POST /pets', { body: JSON.stringify({ name, categoryId: 1 }) })).body.name).toBe(name);
    expect((await sandbox.call('GET /pets/1')).body.name).toBe(name);
  },
);

test.for([
  ['no body', '', 'The body: expected JSON.'],
  ['half a JSON', '{"name":"Ada"', 'The body: expected JSON.'],
  ['a list', '[]', 'The body: expected an object.'],
  ['null', 'null', 'The body: expected an object.'],
  ['a blank name', '{"name":" ","categoryId":1}', 'name: expected 1 to 255 characters'],
  ['a name of 256 characters', `{"name":"${'x'.repeat(256)}","categoryId":1}`, 'name: expected 1 to 255 characters'],
  ['a control character in the name', '{"name":"A\\u0000da","categoryId":1}', 'none of them a control character'],
  [
    'half of a pair of surrogates in the name',
    '{"name":"A\\ud800da","categoryId":1}',
    'none of them a control character or a lone',
  ],
  ['a categoryId with a fraction', '{"name":"Ada","categoryId":1.5}', 'categoryId: expected an int64.'],
  [
    'a categoryId whose fraction no double can hold',
    '{"name":"Ada","categoryId":9007199254740992.6}',
    'categoryId: expected an int64.',
  ],
  ['a categoryId above int64', '{"name":"Ada","categoryId":9223372036854775808}', 'categoryId: expected an int64.'],
  ['a categoryId below int64', '{"name":"Ada","categoryId":-9223372036854775809}', 'categoryId: expected an int64.'],
  ['a categoryId in quotes', '{"name":"Ada","categoryId":"1"}', 'categoryId: expected an int64.'],
  ['null for a categoryId', '{"name":"Ada","categoryId":null}', 'categoryId: expected an int64.'],
  [
    'null for a status',
    '{"name":"Ada","categoryId":1,"status":null}',
    'status: expected one of available, pending, sold.',
  ],
  ['a status in capitals', '{"name":"Ada","categoryId":1,"status":"SOLD"}', 'status: expected one of available'],
] as const)('a creation with %s is a 400 that says what was expected, and adds nothing', async ([, body, message]) => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  const answer = await sandbox.call('POST /pets', { body });
  expect(answer.status).toBe(400);
  expect(answer.body).toEqual({ code: 'bad_request', message: expect.stringContaining(message), status: 400 });
  expect((await sandbox.call('GET /pets')).body).toEqual([]);
});

test('a body of 256 KiB is read, and one byte more is a 413 that adds nothing', async () => {
  await using sandbox = await startTestSandbox({ seeds: [] });
  const largest = ADA.padEnd(262_144);
  expect((await sandbox.call('POST /pets', { body: largest })).status).toBe(201);
  for (const body of [`${largest} `, largest.repeat(3)]) {
    const answer = await sandbox.call('POST /pets', { body });
    expect(answer.status).toBe(413);
    expect(answer.body).toEqual({
      code: 'payload_too_large',
      message: expect.stringContaining('262144 bytes'),
      status: 413,
    });
  }
  expect((await sandbox.call('GET /pets')).body).toHaveLength(1);
});

test('a store that is full refuses a creation with a 409 that adds nothing, and shows what it holds as before', async () => {
  const seeds = Array.from({ length: 49_999 }, () => ({ name: 'Seed', categoryId: '1' as Int64, status: undefined }));
  await using sandbox = await startTestSandbox({ seeds });
  const last = await sandbox.call('POST /pets', { body: ADA });
  expect([last.status, last.body.id]).toEqual([201, 50_000]);
  for (let again = 0; again < 2; again += 1) {
    const { status, headers, body } = await sandbox.call('POST /pets', { body: ADA });
    expect([status, body]).toEqual([
      409,
      { code: 'store_full', message: 'The store holds 50000 animals and takes no more.', status: 409 },
    ]);
    expect(headers.get('x-ratelimit-remaining')).toBe(String(58 - again));
  }
  expect((await sandbox.call('GET /pets/50000')).body).toEqual(last.body);
  expect((await sandbox.call('GET /pets/50001')).status).toBe(404);
  expect((await sandbox.call('POST /pets', { body: ADA, staging: true })).status).toBe(201);
});
