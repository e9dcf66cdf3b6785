/** Run as a worker thread, so that the good client keeps its own: attacks on a petql, until told to stop. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { between, createRandom } from '../../support/random.ts';
import { startSlowBody } from '../../support/slow-body.ts';
import { COSTLY_DOCUMENTS } from '../costly-documents.ts';

/** What the worker does. */
export interface Order {
  readonly endpoint: string;
  readonly attacks: readonly AttackName[];
  /** Of each attack. */
  readonly connections: number;
  /** Requests of each attack. Default: no end. */
  readonly requests?: number | undefined;
  readonly seed: number;
}

/** What the worker reports, once it was told to stop or has sent all requests. */
export interface Report {
  readonly sent: number;
  readonly answered: number;
  /** Of the longest response's body. */
  readonly maxBytes: number;
}

export type AttackName = keyof typeof ATTACKS;

/** Keys that the pet API does not know, and one for which it fails. */
export const MADE_UP_KEY = 'made-up';
export const FAILING_KEY = 'failing';

const order = workerData as Order;
const random = createRandom(order?.seed ?? 1);
const stopping = new AbortController();

const DOCUMENTS = COSTLY_DOCUMENTS.map(({ maxSize, of }) => of(maxSize));
/** Thousands of clients that connect in one moment would hold the event loop, whatever they send. */
const MAX_START_MS = 3_000;
const SLOW_LENGTH = 61_440;
const SLOW_PART = Buffer.alloc(60_000, ' ');
const IDS = [Array.from({ length: 100 }, (_, id) => String(id)), Array.from({ length: 15_000 }, () => ({}))];
const CREATE = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } } }';

interface Attack {
  /** Default: none. */
  readonly pauseMs?: number;
  /** Whether nothing has to come back. Default false. */
  readonly isLost?: boolean;
  /** @returns the length of the response's body. */
  readonly send: (index: number) => Promise<number>;
}

/** Each request is sent in its turn of a connection, after the pause. */
export const ATTACKS = {
  'half-requests': {
    pauseMs: 10,
    isLost: true,
    send: () => {
      // A body that never ends, of a client that leaves.
      const body = new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('{"query":"{ pets { i')) });
      return post('half', body, { signal: AbortSignal.timeout(between(random, 0, 100)), duplex: 'half' });
    },
  },
  'slow-bodies': {
    isLost: true,
    send: async () => {
      await setTimeout(between(random, 0, MAX_START_MS));
      const body = startSlowBody(order.endpoint, SLOW_PART, SLOW_LENGTH);
      stopping.signal.addEventListener('abort', body.destroy, { once: true });
      await body.closed;
      return 0;
    },
  },
  'large-bodies': {
    pauseMs: 10,
    // petql may close the connection before all of it is sent.
    isLost: true,
    send: () => query('large', `{ pets { id } } #${'x'.repeat(400_000)}`),
  },
  'costly-documents': {
    pauseMs: 200,
    send: (index) => {
      // Another comment each time, so that nothing made of the document is kept.
      const document = `${DOCUMENTS[index % DOCUMENTS.length]} # ${random()}`;
      const variables = { ids: IDS[index % IDS.length] };
      return query('costly', document, variables, index % 3 === 0 ? { 'petql-dry-run': '1' } : {});
    },
  },
  'invalid-documents': { send: (index) => query('', `{a${index}}`) },
  'valid-documents': { send: (index) => query('', `{ a${index}: __typename }`) },
  'documents-over-limits': {
    send: (index) => query('', `{ x${index} ${index % 2 ? '{ x '.repeat(25) + '}'.repeat(25) : 'x '.repeat(1_000)} }`),
  },
  'rejected-keys': { send: (index) => query(`${MADE_UP_KEY}-a${index}`, '{ pets { id } }') },
  'unused-keys': { send: (index) => query(`${MADE_UP_KEY}-b${index}`, '{ __typename }') },
  'quotas-of-keys': { send: (index) => query(`${MADE_UP_KEY}-c${index}`, '{ rateLimit { plan } }') },
  'creates-of-keys': {
    send: (index) => {
      const input = { name: 'Momo', categoryId: '3', idempotencyKey: `momo-${index}` };
      return query(`${MADE_UP_KEY}-d${index}`, CREATE, { input });
    },
  },
  'long-errors': {
    pauseMs: 100,
    send: (index) => {
      // One name as long as a body, and as many as fit of the longest that are allowed.
      const names = index % 2 ? ['x'.repeat(60_000)] : Array.from({ length: 9 }, (_, k) => `${k}`.padStart(255, 'x'));
      const fields = names.map((name) => `${name}: petsById(ids: $ids) { id }`);
      return query(FAILING_KEY, `query ($ids: [ID!]!) { ${fields.join(' ')} }`, { ids: IDS[0] });
    },
  },
  'clients-that-read-nothing': { isLost: true, send: askWithoutReading },
} as const satisfies Record<string, Attack>;

function query(key: string, document: string, variables = {}, headers = {}): Promise<number> {
  return post(key, JSON.stringify({ query: document, variables }), {}, headers);
}

async function post(
  key: string,
  body: BodyInit,
  options: RequestInit & { duplex?: 'half' } = {},
  headers = {},
): Promise<number> {
  const authorization = key === '' ? {} : { authorization: `Bearer ${key}` };
  const all = { 'content-type': 'application/json', ...authorization, ...headers };
  const response = await fetch(order.endpoint, { method: 'POST', body, headers: all, ...options });
  return (await response.arrayBuffer()).byteLength;
}

/** Asks for 1.8 MB, which is about all that it gets without a key, and holds the connection until petql closes it. */
async function askWithoutReading(): Promise<number> {
  const fields = Array.from({ length: 100 }, (_, k) => `${`${k}`.padStart(255, 'x')}: description`).join(' ');
  const body = JSON.stringify({ query: `{ __schema { types { fields { ${fields} } } } }` });
  const { hostname, port, pathname } = new URL(order.endpoint);
  const socket = connect(Number(port), hostname).on('error', () => {});
  socket.pause();
  const head = `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json`;
  socket.write(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  stopping.signal.addEventListener('abort', () => socket.destroy(), { once: true });
  await once(socket, 'close');
  return 0;
}

async function run({ attacks, connections, requests = Infinity }: Order): Promise<Report> {
  const report = { sent: 0, answered: 0, maxBytes: 0 };
  await Promise.all(
    attacks.map(async (name) => {
      const { send, isLost = false, pauseMs = 0 }: Attack = ATTACKS[name];
      let next = 0;
      const attack = async () => {
        while (!stopping.signal.aborted && next < requests) {
          const bytes = await send(next++).catch(() => undefined);
          if (!isLost) report.sent += 1;
          if (!isLost && bytes !== undefined) report.answered += 1;
          report.maxBytes = Math.max(report.maxBytes, bytes ?? 0);
          if (pauseMs > 0) await setTimeout(pauseMs);
        }
      };
      await Promise.all(Array.from({ length: connections }, attack));
    }),
  );
  return report;
}

if (parentPort) {
  parentPort.once('message', () => stopping.abort());
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort.postMessage(await run(order));
}
