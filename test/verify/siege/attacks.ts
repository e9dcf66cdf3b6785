import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { createRandom } from '../../support/random.ts';
import { chooseSeed } from '../../support/seed.ts';

/** Goes on until it is aborted; each connection of it is one of `connections`. */
export type Attack = (origin: string, connections: number, signal: AbortSignal) => Promise<void>;

export const ATTACK_SEED = chooseSeed(1);
const random = createRandom(ATTACK_SEED);

/** One operation of one key, as bytes. */
function operation(key: string, query: string, headers: readonly string[] = [], variables?: object): string {
  const body = JSON.stringify({ query, variables });
  const head = [
    'POST /graphql HTTP/1.1',
    'Host: petql',
    'Content-Type: application/json',
    `Authorization: Bearer ${key}`,
    ...headers,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

function get(query: string): string {
  return `GET /graphql?query=${encodeURIComponent(query)} HTTP/1.1\r\nHost: petql\r\n\r\n`;
}

const times = (count: number, one: (index: number) => string) =>
  Array.from({ length: count }, (_, k) => one(k)).join(' ');

/** Documents that cost much; each is sent with another comment, so that nothing made of it is kept. */
const DOCUMENTS: readonly string[] = [
  `${'{ pets '.repeat(800)}${'}'.repeat(800)}`,
  `{ ${times(2_000, (k) => `x${k}`)} }`,
  `{ ${times(190, (k) => `p${k}: pet(id: "1${k}") { id x name }`)} }`,
  `{ ${times(199, (k) => `p${k}: pets(limit: 1) { id }`)} }`,
  `{ pets { ${'id '.repeat(1_490)} } }`,
  `{ pets(limit: ${'['.repeat(2_400)}${']'.repeat(2_400)}) { id } }`,
  `{ pets { ...f0 } } ${times(400, (k) => `fragment f${k} on Pet { ...f${(k + 1) % 400} ...f${(k * 7) % 400} }`)}`,
  `{ pets { ...f0 } } ${times(18, (k) => `fragment f${k} on Pet { ${times(100, (j) => `...f${j % 18}`)} }`)}`,
  `{ ${'\n'.repeat(100_000)} ${times(100, (k) => `x${k}`)} }`,
  `query (${times(700, (k) => `$v${k}: Int`)}) { pets(limit: $v0) { id } }`,
  `{ ${'pets'.repeat(50_000)} }`,
  `{ __schema { ${times(150, (k) => `a${k}: types { name fields { name type { name fields { name } } } }`)} } }`,
  // As much of the schema as anybody is shown.
  `{ __schema { ${times(14, (k) => `a${k}: types { name fields { name type { name fields { name } } } }`)} } }`,
  // Of these each operation, and each list of ids, could be gone through on its own.
  times(990, (k) => `query o${k} { __typename }`),
  `${times(600, (k) => `query o${k} { pets { ...f } }`)} fragment f on Pet { ${times(199, (k) => `a${k}: id`)} }`,
  `${'\n'.repeat(4_900)}query ($i: [ID!]!) { __typename ${times(199, (k) => `a${k}: petsById(ids: $i) { id }`)} }`,
  `${'\n'.repeat(490)}query ($i: [ID!]!) { __typename ${times(10, (k) => `a${k}: petsById(ids: $i) { id }`)} }`,
  `${'\n'.repeat(4_900)}query ($wrong: [ID!]!) { petsById(ids: $wrong) { id } }`,
];

/** For those documents that take any. */
const VARIABLES = {
  i: Array.from({ length: 100 }, (_, k) => String(k)),
  wrong: Array.from({ length: 20_000 }, () => ({})),
};

export const ATTACKS = {
  'half requests': each(async (socket, signal) => {
    const text = operation('half', '{ pets { id } }');
    socket.write(text.slice(0, Math.floor(random() * text.length)));
    await setTimeout(random() * 100, undefined, { signal });
  }),
  'bodies past the limit': each(async (socket, signal) => {
    socket.write(operation('big', `{ pets { id } } #${'x'.repeat(400_000)}`));
    await ended(socket, signal, 500);
  }),
  'costly documents': each(async (socket, signal) => {
    for (let index = 0; !socket.destroyed && !signal.aborted; index += 1) {
      const document = DOCUMENTS[index % DOCUMENTS.length] ?? '';
      // What a dry run costs is for another part of petql to answer than the operation itself.
      const headers = index % 3 === 0 ? ['Petql-Dry-Run: 1'] : [];
      socket.write(operation('costly', `${document} # ${random()}`, headers, VARIABLES));
      await heard(socket, signal);
      await setTimeout(100, undefined, { signal });
    }
  }),
  // One request at a time on each connection: floods of pipelined requests are for the reverse proxy.
  'many small documents': each(async (socket, signal) => {
    while (!socket.destroyed && !signal.aborted) {
      socket.write(get(`{ ${times(20, (k) => `x${k}`)} } # ${random()}`));
      await heard(socket, signal);
      await setTimeout(50, undefined, { signal });
    }
  }),
  'a new key for each request': each(async (socket, signal) => {
    while (!socket.destroyed && !signal.aborted) {
      socket.write(operation(`key-${random()}`, '{ rateLimit { plan } }'));
      await heard(socket, signal);
      await setTimeout(20, undefined, { signal });
    }
  }),
} as const satisfies Record<string, Attack>;

/** As many connections at a time, each new one where another has ended. */
function each(run: (socket: Socket, signal: AbortSignal) => Promise<void>): Attack {
  return async (origin, connections, signal) => {
    const { hostname, port } = new URL(origin);
    await Promise.all(Array.from({ length: connections }, attacker));

    async function attacker(): Promise<void> {
      while (!signal.aborted) {
        const socket = connect(Number(port), hostname);
        socket.on('error', () => {}).resume();
        // What is cut off, and the end of the attack, are no errors here.
        await run(socket, signal).catch(() => {});
        socket.destroy();
        await setTimeout(10 + random() * 40, undefined, { signal }).catch(() => {});
      }
    }
  };
}

/** Until something comes back, or nothing more does. */
async function heard(socket: Socket, signal: AbortSignal): Promise<void> {
  const either = new AbortController();
  const until = { signal: AbortSignal.any([signal, either.signal]) };
  try {
    await Promise.race([once(socket, 'data', until), once(socket, 'close', until)]);
  } finally {
    either.abort();
  }
}

/** At the latest after so long, where it is said. */
async function ended(socket: Socket, signal: AbortSignal, mostMs = 60_000): Promise<void> {
  if (socket.destroyed) return;
  await Promise.race([once(socket, 'close', { signal }), setTimeout(mostMs, undefined, { signal })]);
}
