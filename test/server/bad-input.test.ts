import { request as httpRequest } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { QueryAnswer, TestGateway } from '../support/start-gateway.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
});

/** Whatever came, it cost no upstream call, and the next honest request is served. */
afterEach(async () => {
  expect(gateway.sandbox.calls).toHaveLength(0);
  expect((await gateway.query('{ __typename }')).data).toEqual({ __typename: 'Query' });
});

const codeOf = ({ errors }: QueryAnswer) => errors?.[0]?.extensions.code;

describe('a limit out of bounds', () => {
  test.each(['0', '101', '-1'])('of %s in the document is BAD_USER_INPUT', async (limit) => {
    const answer = await gateway.query(`{ pets(limit: ${limit}) { id } }`);
    expect(codeOf(answer)).toBe('BAD_USER_INPUT');
    expect(answer.errors?.[0]?.message).toBe(`limit: expected a whole number from 1 to 100, got ${limit}.`);
  });
  test.each(['1.5', '"20"', '2147483648'])('of %s in the document fails validation', async (limit) => {
    expect(codeOf(await gateway.query(`{ pets(limit: ${limit}) { id } }`))).toBe('GRAPHQL_VALIDATION_FAILED');
  });
  test.each([0, 101, -1, 1.5, '20'])('of %s in a variable is BAD_USER_INPUT', async (limit) => {
    const answer = await gateway.query('query ($limit: Int) { pets(limit: $limit) { id } }', { variables: { limit } });
    expect(codeOf(answer)).toBe('BAD_USER_INPUT');
  });
});

describe('an id that is no int64', () => {
  const WRONG = [
    '',
    'abc',
    '1e3',
    '1.5',
    '007',
    '+1',
    ' 1',
    '9223372036854775808',
    '-9223372036854775809',
    '1'.repeat(25),
  ];
  test.each(WRONG)('such as "%s" is BAD_USER_INPUT', async (id) => {
    for (const answer of [
      await gateway.query('query ($id: ID!) { pet(id: $id) { id } }', { variables: { id } }),
      await gateway.query('query ($id: ID!) { petsById(ids: ["1", $id]) { id } }', { variables: { id } }),
      await gateway.query(`{ pet(id: ${JSON.stringify(id)}) { id } }`),
    ]) {
      expect(codeOf(answer)).toBe('BAD_USER_INPUT');
    }
  });
  test('such as 1.5 in the document fails validation', async () => {
    expect(codeOf(await gateway.query('{ pet(id: 1.5) { id } }'))).toBe('GRAPHQL_VALIDATION_FAILED');
  });
  test.each(['9007199254740993', '9223372036854775807', '-9007199254740993', '1e300', '1.5', '1e400'])(
    'such as the JSON number %s is BAD_USER_INPUT, where a double cannot hold it exactly',
    async (id) => {
      for (const variables of [`{"id":${id}}`, `{"ids":["1",${id}]}`, `{"input":{"name":"x","categoryId":${id}}}`]) {
        const query = variables.includes('ids')
          ? 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }'
          : variables.includes('input')
            ? 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } } }'
            : 'query ($id: ID!) { pet(id: $id) { id } }';
        const { json } = await post(`{"query":${JSON.stringify(query)},"variables":${variables}}`);
        expect(codeOf(json)).toBe('BAD_USER_INPUT');
      }
    },
  );
  test('is refused in a list of 101 ids, whatever they are', async () => {
    const ids = Array.from({ length: 101 }, (_, index) => String(index));
    const answer = await gateway.query('query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', { variables: { ids } });
    expect(codeOf(answer)).toBe('BAD_USER_INPUT');
  });
});

describe('a body that is no GraphQL request', () => {
  test.each([
    ['malformed JSON', '{"query":', 400, 'BAD_USER_INPUT'],
    ['an empty body', '', 400, 'BAD_USER_INPUT'],
    ['null', 'null', 400, 'BAD_USER_INPUT'],
    ['a number', '1', 400, 'BAD_USER_INPUT'],
    ['a batch', '[{"query":"{ __typename }"}]', 400, 'BAD_USER_INPUT'],
    ['no query', '{}', 400, 'BAD_USER_INPUT'],
    ['an unknown parameter', '{"query":"{ __typename }","foo":1}', 400, 'BAD_USER_INPUT'],
    ['an operation name that is no string', '{"query":"{ __typename }","operationName":1}', 400, 'BAD_USER_INPUT'],
    ['variables that are no object', '{"query":"{ __typename }","variables":[1]}', 400, 'BAD_USER_INPUT'],
  ])('such as %s gets its error and HTTP %3$i', async (_name, body, status, code) => {
    const answer = await post(body);
    expect([answer.status, codeOf(answer.json)]).toEqual([status, code]);
    expect(JSON.stringify(answer.json)).not.toMatch(/originalError|SyntaxError|stack/);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', ''])(
    'such as one of the content type "%s" gets HTTP 415',
    async (contentType) => {
      const answer = await post('{"query":"{ __typename }"}', { 'content-type': contentType });
      expect([answer.status, codeOf(answer.json)]).toEqual([415, 'BAD_USER_INPUT']);
    },
  );

  test('and an Accept header that allows no JSON get HTTP 406', async () => {
    const answer = await post('{"query":"{ __typename }"}', { accept: 'text/xml' });
    expect([answer.status, codeOf(answer.json)]).toEqual([406, 'BAD_USER_INPUT']);
  });

  test('and other methods and broken GET requests get their errors', async () => {
    const put = await fetch(gateway.endpoint, { method: 'PUT', body: '{}' });
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, POST']);
    const get = await fetch(`${gateway.endpoint}?query={__typename}&variables={x`);
    expect([get.status, codeOf((await get.json()) as QueryAnswer)]).toEqual([400, 'BAD_USER_INPUT']);
    const write = await fetch(`${gateway.endpoint}?query=mutation{createPet(input:{name:"x",categoryId:1}){pet{id}}}`);
    expect([write.status, codeOf((await write.json()) as QueryAnswer)]).toEqual([405, 'BAD_USER_INPUT']);
  });
});

describe.each([
  'Application/JSON',
  'application/json ; charset=utf-8',
  'application/json\t;charset=UTF-8',
  'application/GraphQL+json',
])('a body of the content type "%s"', (contentType) => {
  const headers = { 'content-type': contentType };

  test('is read over HTTP and in process, as JSON', async () => {
    const body = '{"query":"{ __typename }"}';
    const answer = await post(body, headers);
    expect([answer.status, answer.json.data]).toEqual([200, { __typename: 'Query' }]);
    const inProcess = await gateway.gateway.fetch(new Request(gateway.endpoint, { method: 'POST', headers, body }));
    expect(await inProcess.json()).toMatchObject({ data: { __typename: 'Query' } });
  });

  test.each([
    ['that is malformed', '{"query":', 400, 'BAD_USER_INPUT'],
    ['that is null', 'null', 400, 'BAD_USER_INPUT'],
    ['that looks like an answer', '{"query":"{ __typename }","status":200,"headers":{"a":1}}', 400, 'BAD_USER_INPUT'],
    ['past the limit', `{"query":"${' '.repeat(262_145)}"}`, 413, 'LIMIT_EXCEEDED'],
  ])('%s gets its error', async (_name, body, status, code) => {
    const overHttp = await post(body, headers);
    expect([overHttp.status, codeOf(overHttp.json)]).toEqual([status, code]);
    // What is a stream does not say how long it is.
    const unread = { method: 'POST', headers, body: new Blob([body]).stream(), duplex: 'half' };
    const inProcess = await gateway.gateway.fetch(new Request(gateway.endpoint, unread));
    expect([inProcess.status, codeOf((await inProcess.json()) as QueryAnswer)]).toEqual([status, code]);
  });
});

describe('a request past a limit is LIMIT_EXCEEDED', () => {
  test('for 10,000 aliases', async () => {
    expect(await past(`{ ${aliases(10_000)} }`)).toBe('tokens');
  });
  test('for 201 root fields', async () => {
    expect(await past(`{ ${aliases(201)} }`)).toBe('rootFields');
  });
  test('for 1,000 levels', async () => {
    expect(await past(`${'{ pets '.repeat(1_000)} { id ${'}'.repeat(1_001)}`)).toBe('depth');
  });
  test('for fragments that multiply', async () => {
    const doubling = Array.from({ length: 30 }, (_, n) => `fragment f${n} on Query { ...f${n + 1} ...f${n + 1} }`);
    expect(await past(`{ ...f0 } ${doubling.join(' ')} fragment f30 on Query { a: __typename }`)).toBe('rootFields');
  });
  test.each([262_145, 1_000_000, 50_000_000])('for a body of %i bytes, with HTTP 413', async (bytes) => {
    const answer = await post(`{"query":"${' '.repeat(bytes - 12)}"}`);
    expect([answer.status, codeOf(answer.json)]).toEqual([413, 'LIMIT_EXCEEDED']);
  });
  test('for a body that does not say its length, with HTTP 413', async () => {
    const chunks = new ReadableStream({
      start(controller) {
        for (let sent = 0; sent < 300; sent += 1) controller.enqueue(new TextEncoder().encode(' '.repeat(1024)));
        controller.close();
      },
    });
    const answer = await post(chunks);
    expect([answer.status, codeOf(answer.json)]).toEqual([413, 'LIMIT_EXCEEDED']);
  });
  test('but not for a hundred aliased reads and the longest introspection', async () => {
    const { data } = await gateway.query(`{ ${Array.from({ length: 100 }, (_, n) => `a${n}: __typename`).join(' ')} }`);
    expect(Object.keys(data ?? {})).toHaveLength(100);
  });
});

describe('a document that GraphQL refuses', () => {
  test.each([
    ['{ pets { id }', 'GRAPHQL_PARSE_FAILED'],
    ['', 'GRAPHQL_PARSE_FAILED'],
    ['{ dogs { id } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['{ pets { wings } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['subscription { pets { id } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }', 'GRAPHQL_VALIDATION_FAILED'],
    ['{ pets(status: LOST) { id } }', 'GRAPHQL_VALIDATION_FAILED'],
  ])('such as %j has the code %s', async (query, code) => {
    expect(codeOf(await gateway.query(query))).toBe(code);
  });
  test('for an unknown operation name says what is expected', async () => {
    const answer = await gateway.query('query A { __typename } query B { __typename }', { operationName: 'C' });
    expect(codeOf(answer)).toBe('BAD_USER_INPUT');
  });
});

describe('an Authorization header', () => {
  test('that comes twice is refused, whichever of the two is good', async () => {
    expect(await rawStatus(['authorization', 'Bearer demo-free', 'authorization', 'Bearer demo-pro'])).toBe(401);
  });
  test('with a line break is refused', async () => {
    expect(await rawStatus(['authorization', 'Bearer demo-free\tdemo-pro'])).toBe(401);
  });
});

async function past(query: string): Promise<unknown> {
  const answer = await gateway.query(query);
  expect(codeOf(answer)).toBe('LIMIT_EXCEEDED');
  return answer.errors?.[0]?.extensions['limit'];
}

async function post(body: string | ReadableStream, headers: Record<string, string> = {}) {
  const response = await fetch(gateway.endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free', ...headers },
    body,
    ...(typeof body === 'string' ? {} : { duplex: 'half' as const }),
  });
  return { status: response.status, json: (await response.json()) as QueryAnswer };
}

function aliases(count: number): string {
  return Array.from({ length: count }, (_, n) => `a${n}: pets { id }`).join(' ');
}

/** fetch joins and cleans headers; this sends them as they are. */
function rawStatus(headers: string[]): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      gateway.endpoint,
      { method: 'POST', headers: ['host', 'localhost', 'content-type', 'application/json', ...headers] },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    request.on('error', reject);
    request.end('{"query":"{ pets { id } }"}');
  });
}
