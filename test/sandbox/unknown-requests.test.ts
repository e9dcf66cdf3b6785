import { expect, test } from 'vitest';
import { startTestSandbox } from './start-test-sandbox.ts';

test.for(['GET /', 'GET /orders', 'POST /orders', 'GET /pets/', 'GET /pets/1/photos', 'DELETE /Pets', 'GET //pets'])(
  '%s is a 404 with an Error',
  async (request) => {
    await using sandbox = await startTestSandbox();
    const { status, body } = await sandbox.call(request);
    expect([status, body]).toEqual([404, { code: 'not_found', message: expect.any(String), status: 404 }]);
  },
);

test.for([
  ['PUT /pets', 'GET, POST'],
  ['DELETE /pets', 'GET, POST'],
  ['OPTIONS /pets', 'GET, POST'],
  ['POST /pets/1', 'GET'],
  ['PATCH /pets/1', 'GET'],
  ['DELETE /pets/1', 'GET'],
] as const)('%s is a 405 with an Error that allows %s', async ([request, allowed]) => {
  await using sandbox = await startTestSandbox();
  const { status, headers, body } = await sandbox.call(request);
  expect([status, body]).toEqual([
    405,
    { code: 'method_not_allowed', message: expect.stringContaining(allowed), status: 405 },
  ]);
  expect(headers.get('allow')).toBe(allowed);
});

test.for(['/', '/pets', '/v2/pets', '/v1', '/staging/pets', '/staging/staging/v1/pets'])(
  '%s, which is under neither base address, is a 404 with an Error',
  async (path) => {
    await using sandbox = await startTestSandbox();
    const response = await fetch(new URL(path, sandbox.url), { headers: { authorization: 'Bearer demo-free' } });
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({ code: 'not_found', message: expect.any(String), status: 404 });
  },
);

test.for(['one', '1.5', '007', '9223372036854775808', '-', '%31x', 'null'])(
  'getPet of %s, which is no int64, is a 400 with an Error',
  async (petId) => {
    await using sandbox = await startTestSandbox();
    const { status, body } = await sandbox.call(`GET /pets/${petId}`);
    expect([status, body]).toEqual([400, { code: 'bad_request', message: 'petId: expected an int64.', status: 400 }]);
  },
);

test('an unknown path says nothing to whoever has no key', async () => {
  await using sandbox = await startTestSandbox();
  expect((await sandbox.call('GET /orders', { key: null })).status).toBe(401);
});
