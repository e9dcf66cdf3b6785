import { describe, expect, test } from 'vitest';
import type { Int64 } from '../../src/pets/int64.ts';
import { startTestSandbox } from './start-test-sandbox.ts';

const ADA = '{"name":"Ada","categoryId":1}';
const SUNSET_MS = Date.UTC(2030, 11, 5);

test('a list shows so many of the 250 pets, lowest ids first', async () => {
  await using sandbox = await startTestSandbox();
  for (const [query, length] of [
    ['', 20],
    ['?limit=1', 1],
    ['?limit=100', 100],
    ['?limit=100&status=available', 100],
    ['?limit=100&status=pending', 60],
    ['?limit=100&status=sold', 40],
  ] as const) {
    const { body } = await sandbox.call(`GET /pets${query}`);
    expect([query, body.length]).toEqual([query, length]);
    const ids = body.map(({ id }: any) => Number(id));
    expect(ids).toEqual(ids.toSorted((a: number, b: number) => a - b));
    const status = /status=(\w+)/.exec(query)?.[1];
    expect(body.filter((pet: any) => status !== undefined && pet.status !== status)).toEqual([]);
  }
});

test('a list with a wrong limit or status is a 400 that says what was expected', async () => {
  await using sandbox = await startTestSandbox();
  const wrong = {
    'limit: expected a whole number from 1 to 100.': [
      'limit=0',
      'limit=101',
      'limit=-1',
      'limit=1.5',
      'limit=',
      'limit=1e1',
    ],
    'status: expected one of available, pending, sold.': ['status=lost', 'status=', 'status=AVAILABLE'],
  };
  for (const [message, queries] of Object.entries(wrong)) {
    for (const query of queries) {
      const { status, body } = await sandbox.call(`GET /pets?${query}`);
      expect([query, status, body]).toEqual([query, 400, { code: 'bad_request', message, status: 400 }]);
    }
  }
});

describe('a create', () => {
  test('without a status makes the pet available, and ignores an id and unknown fields', async () => {
    await using sandbox = await startTestSandbox({ pets: [] });
    const { status, body } = await sandbox.call('POST /pets', { body: `{"id":77,"tag":"x",${ADA.slice(1)}` });
    expect([status, body]).toEqual([201, { id: 1, name: 'Ada', categoryId: 1, status: 'available' }]);
    expect((await sandbox.call('GET /pets/1')).body).toEqual(body);
    expect((await sandbox.call('GET /pets')).body).toEqual([body]);
    expect((await sandbox.call('GET /pets?status=available')).body).toEqual([body]);
  });

  test.each([
    ['without a status', ADA, 'available'],
    ['that is pending', '{"name":"Ada","categoryId":1,"status":"pending"}', 'pending'],
    ['that is sold', '{"name":"Ada","categoryId":1,"status":"sold"}', 'sold'],
  ])('%s is the first of the next lists, before those of a new store', async (_name, body, status) => {
    await using sandbox = await startTestSandbox();
    const created = [await sandbox.call('POST /pets', { body }), await sandbox.call('POST /pets', { body })];
    const ids = created.map((response) => response.body.id).toReversed();
    for (const list of ['GET /pets?limit=3', `GET /pets?limit=3&status=${status}`]) {
      const [first, second, third] = (await sandbox.call(list)).body;
      expect([first.id, second.id]).toEqual(ids);
      expect(third.id).toBeLessThan(250);
    }
  });

  test('keeps every digit of a category and every character of a name', async () => {
    await using sandbox = await startTestSandbox({ pets: [] });
    const names = ['猫 🐈', 'a "quoted" \\ name', ' padded ', 'x'.repeat(255), '🐈'.repeat(255)];
    const categories = ['9223372036854775807', '-9223372036854775808', '9007199254740993', '0', '-1'];
    for (const [index, name] of names.entries()) {
      const created = `{"name":${JSON.stringify(name)},"categoryId":${categories[index]}}`;
      const { id } = (await sandbox.call('POST /pets', { body: created })).body;
      const { body } = await sandbox.call(`GET /pets/${id}`);
      expect([body.name, String(body.categoryId)]).toEqual([name, categories[index]]);
    }
  });

  test('that is wrong is a 400 that says what was expected, and adds nothing', async () => {
    await using sandbox = await startTestSandbox({ pets: [] });
    for (const [body, message] of [
      ['', 'The body: expected JSON.'],
      ['{"name":"Ada"', 'The body: expected JSON.'],
      ['[]', 'The body: expected an object.'],
      ['{"name":" ","categoryId":1}', 'name: expected 1 to 255 characters'],
      [`{"name":"${'x'.repeat(256)}","categoryId":1}`, 'name: expected 1 to 255 characters'],
      ['{"name":"A\\u0000da","categoryId":1}', 'without control characters'],
      ['{"name":"A\\ud800da","categoryId":1}', 'lone surrogates'],
      ['{"name":"Ada","categoryId":1.5}', 'categoryId: expected an int64.'],
      ['{"name":"Ada","categoryId":9007199254740992.6}', 'categoryId: expected an int64.'],
      ['{"name":"Ada","categoryId":9223372036854775808}', 'categoryId: expected an int64.'],
      ['{"name":"Ada","categoryId":"1"}', 'categoryId: expected an int64.'],
      ['{"name":"Ada","categoryId":1,"status":null}', 'status: expected one of available, pending, sold.'],
    ] as const) {
      const answer = await sandbox.call('POST /pets', { body });
      const error = { code: 'bad_request', message: expect.stringContaining(message), status: 400 };
      expect([body, answer.status, answer.body]).toEqual([body, 400, error]);
    }
    expect((await sandbox.call('GET /pets')).body).toEqual([]);
  });

  test('in a full store is a 409', async () => {
    const pets = Array.from({ length: 49_999 }, () => ({ name: 'Seed', categoryId: '1' as Int64, status: undefined }));
    await using sandbox = await startTestSandbox({ pets });
    expect((await sandbox.call('POST /pets', { body: ADA })).body.id).toBe(50_000);
    const { status, body } = await sandbox.call('POST /pets', { body: ADA });
    expect([status, body.code]).toEqual([409, 'store_full']);
    expect((await sandbox.call('GET /pets/50001')).status).toBe(404);
  });
});

describe('getPet', () => {
  test('finds an id beyond the exact doubles, and none beside it', async () => {
    await using sandbox = await startTestSandbox();
    const pet = { id: 9007199254740993n, name: 'Methuselah', categoryId: 9007199254740995n, status: 'available' };
    expect((await sandbox.call('GET /pets/9007199254740993')).body).toEqual(pet);
    expect((await sandbox.call('GET /pets/9007199254740992')).status).toBe(404);
  });

  test('is deprecated whatever it finds, and gone from its sunset on; the other operations are not', async () => {
    await using sandbox = await startTestSandbox();
    const answers = { '/pets/1': 200, '/pets/404404': 404, '/pets/one': 400, '/pets/007': 400 };
    for (const [path, status] of Object.entries(answers)) {
      const answer = await sandbox.call(`GET ${path}`);
      expect(answer.status).toBe(status);
      expect(answer.headers.get('deprecation')).toBe(`@${Date.UTC(2025, 11, 5) / 1000}`);
      expect(answer.headers.get('sunset')).toBe('Thu, 05 Dec 2030 00:00:00 GMT');
    }
    sandbox.clock.nowMs = SUNSET_MS - 1;
    expect((await sandbox.call('GET /pets/1')).status).toBe(200);
    sandbox.clock.nowMs = SUNSET_MS;
    for (const path of Object.keys(answers)) {
      const { status, body } = await sandbox.call(`GET ${path}`);
      expect([status, body.code]).toEqual([410, 'gone']);
    }
    const listed = await sandbox.call('GET /pets');
    expect([listed.status, listed.headers.get('deprecation')]).toEqual([200, null]);
  });
});

test('another path is a 404 and another method a 405, each with an Error', async () => {
  await using sandbox = await startTestSandbox();
  for (const request of ['GET /', 'POST /orders', 'GET /pets/', 'GET /pets/1/photos', 'DELETE /Pets', 'GET //pets']) {
    const { status, body } = await sandbox.call(request);
    expect([status, body]).toEqual([404, { code: 'not_found', message: expect.any(String), status: 404 }]);
  }
  for (const path of ['/', '/pets', '/v2/pets', '/v1', '/staging/v1/pets']) {
    const headers = { authorization: 'Bearer demo-free' };
    expect((await fetch(new URL(path, sandbox.url), { headers })).status).toBe(404);
  }
  const methods = { 'PUT /pets': 'GET, POST', 'OPTIONS /pets': 'GET, POST', 'POST /pets/1': 'GET' };
  for (const [request, allow] of Object.entries(methods)) {
    const { status, headers, body } = await sandbox.call(request);
    expect([status, headers.get('allow'), body.code]).toEqual([405, allow, 'method_not_allowed']);
  }
});
