import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test as oneTest } from 'vitest';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import { askDayUsed, post } from '../support/client.ts';
import { slow } from '../support/pet-api/fault.ts';
import { MAIN, runPetql, startPetql } from '../support/run-petql.ts';
import type { PetqlProcess, RunOptions } from '../support/run-petql.ts';
import { createTestPetApi } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';
import { servePort } from '../support/serve.ts';
import { until } from '../support/until.ts';

const KEY = 'demo-business';
const WRITERS = 8;
const ENOUGH = 25;
/** What kill -9 may take of the day: more than this petql keeps in reserve. */
const RESERVE = 30;

/** Processes start and end in real time, so the tests wait together. */
const test = oneTest.concurrent;

let root: string;
const closing = new AsyncDisposableStack();
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'petql-shutdown-'));
});
afterAll(async () => {
  await closing.disposeAsync();
  await rm(root, { recursive: true });
});

async function start(...args: string[]): Promise<PetqlProcess> {
  return startWith({}, ...args);
}

async function startWith(options: RunOptions, ...args: string[]): Promise<PetqlProcess> {
  const petql = await startPetql(['--port', '0', '--plan', 'business', ...args], options);
  closing.defer(async () => {
    petql.kill('SIGKILL');
    await petql.exited;
  });
  return petql;
}

/** Returns the id, or the error's code. */
async function create({ address }: PetqlProcess, name: string): Promise<string> {
  const input = `{ name: "${name}", categoryId: 1, idempotencyKey: "${name.replaceAll(' ', '-')}" }`;
  const query = `mutation { createPet(input: ${input}) { pet { id } } }`;
  const answer = await post(address, query, { headers: { authorization: `Bearer ${KEY}` } });
  return codesOf(answer)[0] ?? answer.data?.['createPet'].pet.id;
}

/** Creates pets until petql does not answer any more, and calls `onEnough` on the way. */
async function createMany(petql: PetqlProcess, onEnough: () => void) {
  const answered = new Map<string, string>();
  const sent = new Set<string>();
  const write = async (writer: number) => {
    for (let turn = 0; ; turn += 1) {
      const name = `Pet ${writer} ${turn}`;
      sent.add(name);
      const id = await create(petql, name).catch(() => undefined);
      if (id === undefined) return;
      answered.set(name, id);
      if (createdOf(answered).length === ENOUGH) onEnough();
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  return { created: createdOf(answered), answered, sent };
}

/** Without those that were answered by an error. */
function createdOf(answered: ReadonlyMap<string, string>): [name: string, id: string][] {
  return [...answered].filter(([, id]) => /^\d+$/.test(id));
}

test.each(['SIGTERM', 'SIGKILL'] as const)(
  '%s under load loses nothing that was answered, creates nothing twice, and the next process goes on from there',
  async (signal) => {
    const pets = join(root, `${signal}-pets.db`);
    const { listen, close } = createSandbox({ file: pets });
    closing.defer(close);
    const sandboxUrl = await listen();
    const stateFile = join(root, `${signal}-state.db`);
    const startOverFile = () => start('--pet-api-url', sandboxUrl, '--state-file', stateFile, '--max-wait-ms', '1000');
    const first = await startOverFile();
    const { created, answered, sent } = await createMany(first, () => first.kill(signal));
    expect(await first.exited).toBe(signal === 'SIGKILL' ? 'SIGKILL' : 0);
    expect(created.length).toBeGreaterThanOrEqual(ENOUGH);

    const second = await startOverFile();
    const used = await askDayUsed(second.address, KEY);
    expect(used).toBeGreaterThanOrEqual(created.length - (signal === 'SIGKILL' ? RESERVE : 0));
    expect(used).toBeLessThanOrEqual(sent.size);
    const again = created.map(async ([name]) => [name, await create(second, name)]);
    expect(await Promise.all(again)).toEqual(created);
    // Pets without an answer may exist or not; another submit creates none.
    await Promise.all([...sent].filter((name) => !answered.has(name)).map((name) => create(second, name)));
    const database = new DatabaseSync(pets, { readOnly: true });
    const rows = database.prepare("SELECT name, count(*) AS times FROM pet WHERE name LIKE 'Pet _ %' GROUP BY name");
    const times = new Map(rows.all().map((row) => [String(row['name']), Number(row['times'])]));
    database.close();
    expect(created.filter(([name]) => times.get(name) !== 1)).toEqual([]);
    expect([...times].filter(([, count]) => count !== 1)).toEqual([]);
  },
);

/** petql over an upstream that answers late, and a create under way there. */
async function createSlowly(delayMs: number, options: RunOptions = {}) {
  const petApi = createTestPetApi();
  const { url } = closing.use(await petApi.listen());
  const petql = await startWith(options, '--pet-api-url', url, '--upstream-timeout-ms', '60000');
  petApi.fault = slow(delayMs);
  const creating = create(petql, 'Slow pet').catch(() => 'lost');
  await until(() => petApi.log.length > 0);
  return { petql, creating };
}

test('a second SIGINT ends it at once while a call is under way', async () => {
  const { petql, creating } = await createSlowly(60_000);
  petql.kill('SIGINT');
  const refuses = () =>
    fetch(petql.address).then(
      () => false,
      () => true,
    );
  await until(refuses);
  const startedMs = performance.now();
  const repeating = setInterval(() => petql.kill('SIGINT'), 50);
  expect(await petql.exited).toBe(130);
  clearInterval(repeating);
  // Without it the grace is seven seconds.
  expect(performance.now() - startedMs).toBeLessThan(6_000);
  expect(await creating).toBe('lost');
});

/** Sends one query on a new connection. Returns its status, or the code of the error where nothing listens. */
async function queryAlone({ address }: PetqlProcess): Promise<number | string> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${KEY}` };
  const sent = request(address, { method: 'POST', agent: false, headers });
  try {
    const [response] = (await once(sent.end('{"query":"{ pets { id } }"}'), 'response')) as [IncomingMessage];
    response.resume();
    return response.statusCode ?? 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
}

test('a load balancer that looks at readiness each 100 ms loses no request to a process that stops', async () => {
  const petql = await start('--shutdown-delay-ms', '3000');
  const isReady = async () => (await fetch(new URL('/health/ready', petql.address))).ok;
  const answers: (number | string)[] = [];
  for (let turn = 0; await isReady(); turn += 1) {
    if (turn === 3) petql.kill('SIGTERM');
    for (let query = 0; query < 10; query += 1) {
      answers.push(await queryAlone(petql));
      await pause(10);
    }
  }
  expect(answers.length).toBeGreaterThanOrEqual(40);
  expect(new Set(answers)).toEqual(new Set([200]));
  // Connections that stay end with their response, since their requests shall go elsewhere.
  expect((await fetch(new URL('/health/live', petql.address))).headers.get('connection')).toBe('close');
  await until(async () => (await queryAlone(petql)) === 'ECONNREFUSED');
  expect(await petql.exited).toBe(0);
});

test('a second SIGTERM ends it at once while it still serves', async () => {
  const petql = await start('--shutdown-delay-ms', '60000');
  petql.kill('SIGTERM');
  const repeating = setInterval(() => petql.kill('SIGTERM'), 50);
  expect(await petql.exited).toBe(143);
  clearInterval(repeating);
});

/** What others load before petql, as an SDK for traces that must send its last spans. */
const LISTENERS: [name: string, listener: string][] = [
  ['ends the process, as in the pages of OpenTelemetry', '() => { flush().finally(() => process.exit(0)); }'],
  ['returns its promise', 'async () => { await flush(); }'],
  ['returns nothing', '() => { void flush(); }'],
];
const FLUSH = "const flush = () => new Promise((done) => setTimeout(done, 300)).then(() => console.log('flushed'));";

const withListener = (listener: string): RunOptions => {
  const source = `${FLUSH} for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, ${listener});`;
  return { nodeOptions: ['--import', `data:text/javascript,${encodeURIComponent(source)}`] };
};

describe.each(LISTENERS)('a listener of others that %s', (_name, listener) => {
  test.each(['SIGTERM', 'SIGINT'] as const)('runs at a %s, and nothing of petql is lost', async (signal) => {
    const { petql, creating } = await createSlowly(500, withListener(listener));
    petql.kill(signal);
    expect(await creating).toMatch(/^\d+$/);
    const createdMs = performance.now();
    expect(await petql.exited).toBe(0);
    expect(petql.output.stdout).toMatch(/^flushed$/m);
    expect(performance.now() - createdMs).toBeLessThan(6_000);
  });

  test('runs where a second signal ends petql', async () => {
    const { petql } = await createSlowly(60_000, withListener(listener));
    petql.kill('SIGTERM');
    await pause(1_200);
    petql.kill('SIGTERM');
    expect([0, 143]).toContain(await petql.exited);
    expect(petql.output.stdout).toMatch(/^flushed$/m);
  });
});

test.each(LISTENERS.slice(0, 2))(
  'in the middle of the start, a listener of others that %s runs',
  async (_name, listener) => {
    const connected = Promise.withResolvers<void>();
    await using silent = await servePort(() => connected.resolve());
    const ending = runPetql(['--port', '0', '--redis-url', `redis://127.0.0.1:${silent.port}`], {
      ...withListener(listener),
      onStart: ({ kill }) => void connected.promise.then(() => kill('SIGINT')),
    });
    const { code, stdout } = await ending;
    expect([0, 130]).toContain(code);
    expect(stdout).toBe('flushed\n');
  },
);

test('a signal in the middle of the start ends it', async () => {
  const connected = Promise.withResolvers<void>();
  // A Redis that says nothing, for which the start waits.
  await using silent = await servePort(() => connected.resolve());
  const args = ['--port', '0', '--redis-url', `redis://127.0.0.1:${silent.port}`];
  const starting = spawn(process.execPath, [MAIN, ...args], { env: { PATH: process.env['PATH'] }, stdio: 'ignore' });
  await connected.promise;
  starting.kill('SIGTERM');
  // By itself: as the first process of a container, only its own handler can end it.
  expect(await once(starting, 'exit')).toEqual([143, null]);
});

// Where npm's shell is bash, Ctrl-C reaches petql from the terminal and from npm.
test('a signal that comes twice at once counts once: calls under way end, and nothing new is taken', async () => {
  const { petql, creating } = await createSlowly(300);
  petql.kill('SIGINT');
  await new Promise((resolve) => setTimeout(resolve, 5));
  petql.kill('SIGINT');
  expect(await creating).toMatch(/^\d+$/);
  expect(await petql.exited).toBe(0);
});
