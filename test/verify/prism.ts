import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { request as send } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { dirname } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { post } from '../support/client.ts';
import { LISTS, OPERATION_NAMES, filterOf } from '../support/pet-api/contract.ts';
import type { ListName, OperationName } from '../support/pet-api/contract.ts';
import { PET, asVariable, listField } from '../support/pet-documents.ts';
import { between, createRandom } from '../support/random.ts';
import type { Random } from '../support/random.ts';
import { startPetql } from '../support/run-petql.ts';
import { freePort, serve } from '../support/serve.ts';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import type { Check, CheckOptions, Suite } from './suite.ts';

/** Not among the dependencies: it brings 213 packages and 74 MB. */
const PRISM = '@stoplight/prism-cli@5.16.0';
const OPENAPI = fileURLToPath(new URL('../../schema/pet-api.openapi.yaml', import.meta.url));
const KEY = 'demo-enterprise';
const OPERATIONS = 200;
/** What the first download may take. */
const START_MS = 120_000;

const ON_CONTRACT = 'no request of petql is off the contract of the pet API';
const CONTRADICTS = 'Prism finds a request that is off the contract';
const SERVED = 'each operation has its result';

/** A call as Prism judged it. */
interface JudgedCall {
  readonly call: string;
  /** Undefined where Prism has nothing to say. */
  readonly problem: string | undefined;
}

/** A stranger judges petql's calls by schema/pet-api.openapi.yaml. */
export const prism: Suite = {
  about: "gives petql's calls to Prism, which judges them by the OpenAPI file",
  checks: [
    // With a new key each time, since the few pets of a mock answer everything.
    check('mock', async (resources, options) => judge(resources, ['mock'], options, (number) => `key-${number}`)),
    check('proxy', async (resources, options) => {
      const sandbox = await startPetql(['sandbox', '--port', '0']);
      resources.defer(() => sandbox.kill('SIGKILL'));
      // It judges the responses of the sandbox too.
      const { calls, failures } = await judge(resources, ['proxy', '--errors', sandbox.address], options, () => KEY);
      return { calls, failures, served: OPERATIONS };
    }),
  ],
};

interface Judged {
  readonly calls: readonly JudgedCall[];
  /** Errors of operations. */
  readonly failures: readonly string[];
  /** How many operations should have a result: a mock knows no pets. Default 0. */
  readonly served?: number;
}

type Run = (resources: AsyncDisposableStack, options: CheckOptions) => Promise<Judged>;

function check(name: string, run: Run): Check {
  return {
    name,
    goal: ON_CONTRACT,
    processes: 3,
    async run(options) {
      await using resources = new AsyncDisposableStack();
      const { calls, failures, served = 0 } = await run(resources, options);
      const [wrong, ...own] = calls;
      const kinds = new Set(own.map(({ call }) => call.replace(/\/-?\d+(?=[/?]|$)/, '/{petId}').replace(/\?.*/, '')));
      const problems = own.flatMap(({ call, problem }) => (problem ? [`${call}: ${problem}`] : []));
      if (kinds.size !== OPERATION_NAMES.length)
        problems.push(`expected a call of each operation, got ${[...kinds].join(', ')}`);
      const rows: Row[] = [
        rowOf({ promise: ON_CONTRACT, looked: own.length, problems, measured: `${own.length} calls` }),
        rowOf({ promise: CONTRADICTS, looked: 1, problems: wrong?.problem ? [] : ['it found none'], measured: '' }),
      ];
      if (served > 0) rows.push(rowOf({ promise: SERVED, looked: served, problems: failures, measured: '' }));
      return rows;
    },
  };
}

/** Runs operations over petql over Prism. The first call is off the contract, and not petql's. */
async function judge(
  resources: AsyncDisposableStack,
  mode: readonly string[],
  { seed }: CheckOptions,
  keyOf: (number: number) => string,
): Promise<Judged> {
  const prismOrigin = await startPrism(resources, mode);
  const calls: JudgedCall[] = [];
  const recorder = resources.use(await serve((request, response) => passOn(prismOrigin, calls, request, response)));
  await fetch(`${recorder.origin}/v1/pets?limit=101`, { headers: { authorization: `Bearer ${KEY}` } });

  const args = ['--port', '0', '--pet-api-url', `${recorder.origin}/v1`, '--plan', '5000/1000000'];
  const petql = await startPetql([...args, '--log-level', 'error']);
  resources.defer(() => petql.kill('SIGKILL'));
  const random = createRandom(seed);
  const failures: string[] = [];
  for (let number = 0; number < OPERATIONS; number += 1) {
    const { query, variables } = randomOperation(random);
    const headers = { authorization: `Bearer ${keyOf(number)}`, 'cache-control': 'no-cache', traceparent: TRACE };
    const { errors } = await post(petql.address, query, { variables, headers });
    for (const { message } of errors ?? []) failures.push(`${query}: ${message}`);
  }
  return { calls, failures };
}

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
type Document = readonly [query: string, variables: object];

/** Documents by the operation that they lead to: one that is missing does not compile. */
const DOCUMENTS: Readonly<Record<OperationName, readonly ((random: Random, id: string) => Document)[]>> = {
  listPets: [(random) => [`{ ${listField(anyListOf(random))} ${PET} }`, {}]],
  getPet: [
    (_random, id) => ['query ($id: ID!) { pet(id: $id) { name } }', { id }],
    (_random, id) => ['query ($ids: [ID!]!) { petsById(ids: $ids) { id } }', { ids: [id, '1', '2'] }],
  ],
  createPet: [
    (random, id) => {
      const input = { name: anyName(random), categoryId: random() < 0.5 ? id : `-${id}` };
      return [
        'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } userErrors { message } } }',
        { input: { ...input, ...asVariable(filterOf(anyListOf(random))) } },
      ];
    },
  ],
};
const EACH_DOCUMENT = Object.values(DOCUMENTS).flat();

function randomOperation(random: Random) {
  const id = String(between(random, 1, random() < 0.5 ? 300 : Number.MAX_SAFE_INTEGER));
  const [query, variables] = EACH_DOCUMENT[between(random, 0, EACH_DOCUMENT.length - 1)]?.(random, id) ?? ['', {}];
  return { query, variables: { ...variables } };
}

function anyListOf(random: Random): ListName {
  return LISTS[between(random, 0, LISTS.length - 1)] ?? 'all';
}

function anyName(random: Random): string {
  return String.fromCodePoint(...Array.from({ length: between(random, 1, 40) }, () => between(random, 32, 0xd7ff)));
}

/** Returns its origin. */
async function startPrism(resources: AsyncDisposableStack, [mode = '', ...more]: readonly string[]): Promise<string> {
  const port = await freePort();
  const [flags, upstream] = [more.filter((word) => word.startsWith('-')), more.filter((word) => !word.startsWith('-'))];
  const args = ['--yes', '--ignore-scripts', PRISM, mode, ...flags, '--port', String(port), OPENAPI, ...upstream];
  const child = spawn('npx', args, {
    // A group of its own: npx starts a shell, and that starts Prism.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}`, SCARF_ANALYTICS: 'false' },
  });
  resources.defer(() => void (child.pid && child.exitCode === null && process.kill(-child.pid)));

  let output = '';
  child.stdout.on('data', (data: Buffer) => (output += data.toString()));
  child.stderr.on('data', (data: Buffer) => (output += data.toString()));
  const ended = once(child, 'exit').then(() => 'ended');
  const deadlineMs = performance.now() + START_MS;
  while (!output.includes('Prism is listening')) {
    const state = await Promise.race([ended, new Promise((resolve) => void setTimeout(resolve, 50))]);
    if (state === 'ended' || performance.now() > deadlineMs) throw new Error(`Prism does not start: ${output}`);
  }
  return `http://127.0.0.1:${port}`;
}

/** Passes a call on to Prism, which has no version segment, and notes what Prism says of it. */
function passOn(origin: string, calls: JudgedCall[], request: IncomingMessage, response: ServerResponse): void {
  const { method = '', headers } = request;
  const url = request.url?.replace(/^\/v1/, '') ?? '';
  const passed = send(new URL(url, origin), { method, headers }, (received) => {
    void text(received).then((body) => {
      // Prism answers for itself with a problem (RFC 9457), and never with one of the pet API's errors.
      const isProblem = received.headers['content-type']?.startsWith('application/problem+json') === true;
      calls.push({ call: `${method} ${url}`, problem: isProblem ? body : undefined });
      const { 'transfer-encoding': _, ...rest } = received.headers;
      response.writeHead(received.statusCode ?? 0, rest).end(body);
    });
  });
  passed.on('error', () => response.destroy());
  request.pipe(passed);
}
