/** Run as a worker thread, so that the good client keeps its own: one attack on a petql, until it is terminated. */
import { setTimeout } from 'node:timers/promises';
import { isMainThread, workerData } from 'node:worker_threads';
import { between, createRandom } from '../../support/random.ts';
import { COSTLY_DOCUMENTS } from '../costly-documents.ts';

/** What the worker does. */
export interface Order {
  readonly endpoint: string;
  readonly attacks: readonly AttackName[];
  /** Of each attack. */
  readonly connections: number;
  readonly seed: number;
}

export type AttackName = keyof typeof ATTACKS;

const order = workerData as Order;
const random = createRandom(isMainThread ? 1 : order.seed);

const DOCUMENTS = COSTLY_DOCUMENTS.map(({ maxSize, of }) => of(maxSize));
const IDS = [Array.from({ length: 100 }, (_, id) => String(id)), Array.from({ length: 15_000 }, () => ({}))];

/** Each request is sent in its turn of a connection, after a pause in milliseconds. */
export const ATTACKS = {
  'half-requests': {
    pauseMs: 10,
    send: () => {
      // A body that never ends, of a client that leaves.
      const body = new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from('{"query":"{ pets { i')) });
      return post('half', body, { signal: AbortSignal.timeout(between(random, 0, 100)), duplex: 'half' });
    },
  },
  'large-bodies': { pauseMs: 10, send: () => query('large', `{ pets { id } } #${'x'.repeat(400_000)}`) },
  'costly-documents': {
    pauseMs: 200,
    send: (index) => {
      // Another comment each time, so that nothing made of the document is kept.
      const document = `${DOCUMENTS[index % DOCUMENTS.length]} # ${random()}`;
      return query(
        'costly',
        document,
        { ids: IDS[index % IDS.length] },
        index % 3 === 0 ? { 'petql-dry-run': '1' } : {},
      );
    },
  },
  'small-documents': {
    pauseMs: 50,
    send: () => {
      const fields = Array.from({ length: 20 }, (_, index) => `x${index}`).join(' ');
      return fetch(`${order.endpoint}?query=${encodeURIComponent(`{ ${fields} } # ${random()}`)}`);
    },
  },
  'new-keys': { pauseMs: 20, send: () => query(`key-${random()}`, '{ rateLimit { plan } }') },
} as const satisfies Record<string, { pauseMs: number; send(index: number): Promise<Response> }>;

function query(key: string, document: string, variables = {}, headers = {}): Promise<Response> {
  return post(key, JSON.stringify({ query: document, variables }), {}, headers);
}

function post(
  key: string,
  body: BodyInit,
  options: RequestInit & { duplex?: 'half' } = {},
  headers = {},
): Promise<Response> {
  const all = { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers };
  return fetch(order.endpoint, { method: 'POST', body, headers: all, ...options });
}

async function attack(name: AttackName): Promise<never> {
  const { pauseMs, send } = ATTACKS[name];
  for (let index = Math.floor(random() * 100); ; index += 1) {
    // What is cut off is no error here.
    await send(index).then(
      (response) => response.arrayBuffer(),
      () => {},
    );
    await setTimeout(pauseMs);
  }
}

if (!isMainThread) {
  const { attacks, connections } = order;
  await Promise.all(attacks.flatMap((name) => Array.from({ length: connections }, () => attack(name))));
}
