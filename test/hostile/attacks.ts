import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** Goes on until it is aborted; each connection of it is one of `connections`. */
export type Attack = (origin: string, connections: number, signal: AbortSignal) => Promise<void>;

/** Often enough to be heard by whoever looks for silence alone. */
const DRIP_MS = 1_000;

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
  'silent connections': each(async (socket, signal) => {
    await ended(socket, signal);
  }),
  'slow headers': each(async (socket, signal) => {
    socket.write('POST /graphql HTTP/1.1\r\nHost: petql\r\n');
    await drip(socket, signal, 'X-Slow: 1\r\n');
  }),
  'slow bodies': each(async (socket, signal) => {
    socket.write(operation('slow', '{ pets { id } }').replace(/Content-Length: \d+/, 'Content-Length: 5000'));
    await drip(socket, signal, ' ');
  }),
  'half requests': each(async (socket, signal) => {
    const text = operation('half', '{ pets { id } }');
    socket.write(text.slice(0, Math.floor(Math.random() * text.length)));
    await setTimeout(Math.random() * 100, undefined, { signal });
  }),
  'floods of headers': each(async (socket, signal) => {
    socket.write(
      operation(
        'flood',
        '{ pets { id } }',
        Array.from({ length: 5_000 }, (_, k) => `X-${k}: ${k}`),
      ),
    );
    await ended(socket, signal);
  }),
  'pipelined requests': each(async (socket, signal) => {
    socket.write(
      times(100, (k) => operation(`pipe-${k}`, '{ rateLimit { plan } pets(limit: 2) { id } }')).replaceAll(
        '} POST',
        '}POST',
      ),
    );
    await setTimeout(500, undefined, { signal });
  }),
  'answers that nobody takes': async (origin, connections, signal) => {
    const script = `GET ${await largestFile(origin)} HTTP/1.1\r\nHost: petql\r\n\r\n`;
    const untaken = each(async (socket) => {
      socket.pause().write(script.repeat(100));
      await ended(socket, signal);
    });
    await untaken(origin, connections, signal);
  },
  'bodies past the limit': each(async (socket, signal) => {
    socket.write(operation('big', `{ pets { id } } #${'x'.repeat(400_000)}`));
    await ended(socket, signal, 500);
  }),
  'bodies in crumbs': each(async (socket, signal) => {
    socket.write(
      `POST /graphql HTTP/1.1\r\nHost: petql\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(200_000)}`,
    );
    await ended(socket, signal);
  }),
  'uploads that never end': each(async (socket, signal) => {
    socket.write('POST /graphql HTTP/1.1\r\nHost: petql\r\nTransfer-Encoding: chunked\r\n\r\n');
    while (!socket.destroyed && !signal.aborted) {
      socket.write(`10000\r\n${' '.repeat(0x10000)}\r\n`);
      await setTimeout(DRIP_MS, undefined, { signal });
    }
  }),
  'costly documents': each(async (socket, signal) => {
    for (let index = 0; !socket.destroyed && !signal.aborted; index += 1) {
      const document = DOCUMENTS[index % DOCUMENTS.length] ?? '';
      // What a dry run costs is for another part of petql to answer than the operation itself.
      const headers = index % 3 === 0 ? ['Petql-Dry-Run: 1'] : [];
      socket.write(operation('costly', `${document} # ${Math.random()}`, headers, VARIABLES));
      await heard(socket, signal);
      await setTimeout(100, undefined, { signal });
    }
  }),
  'many small documents at once': each(async (socket, signal) => {
    for (; !socket.destroyed && !signal.aborted;) {
      const documents = Array.from({ length: 50 }, () => `{ ${times(20, (k) => `x${k}`)} } # ${Math.random()}`);
      socket.write(documents.map((document) => get(document)).join(''));
      await heard(socket, signal);
      await setTimeout(100, undefined, { signal });
    }
  }),
  'a key of its own for each request': each(async (socket, signal) => {
    for (; !socket.destroyed && !signal.aborted;) {
      const keys = Array.from({ length: 20 }, () => operation(`key-${Math.random()}`, '{ rateLimit { plan } }'));
      socket.write(keys.join(''));
      await heard(socket, signal);
      await setTimeout(20, undefined, { signal });
    }
  }),
} as const satisfies Record<string, Attack>;

/** The path of GraphiQL's script, of some megabytes. */
async function largestFile(origin: string): Promise<string> {
  const page = await fetch(`${origin}/graphql`, { headers: { accept: 'text/html' } });
  return /src="([^"]+)"/.exec(await page.text())?.[1] ?? '/';
}

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
        await setTimeout(10 + Math.random() * 40, undefined, { signal }).catch(() => {});
      }
    }
  };
}

async function drip(socket: Socket, signal: AbortSignal, text: string): Promise<void> {
  while (!socket.destroyed && !signal.aborted) {
    socket.write(text);
    await setTimeout(DRIP_MS, undefined, { signal });
  }
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
