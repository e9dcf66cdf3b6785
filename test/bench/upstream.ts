import { createServer } from 'node:http';

/**
 * The pet service as the bench needs it: a constant store of as many animals as it is told, and headers of a plan that
 * never binds. What is asked of ids from a million on is never answered, so that whoever asks waits.
 */
const STATUSES = ['available', 'pending', 'sold'];
const LISTED = 100;
const STUCK_FROM = 1_000_000;

const animals = Array.from({ length: Number(process.env['ANIMALS']) }, (_, index) => ({
  id: index + 1,
  name: `Animal ${index + 1}`,
  categoryId: (index % 7) + 1,
  status: STATUSES[index % STATUSES.length],
}));
const bodies = new Map<string, string>();
let calls = 0;

const server = createServer((request, response) => {
  calls += 1;
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const id = Number(/^\/v1\/pets\/(\d+)$/.exec(pathname)?.[1] ?? 0);
  if (id >= STUCK_FROM) return;
  const body = bodies.get(request.url ?? '') ?? bodyOf(id, searchParams);
  bodies.set(request.url ?? '', body);
  response.writeHead(body === NOT_FOUND ? 404 : 200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-ratelimit-limit': '100000000',
    'x-ratelimit-remaining': '99000000',
    'x-ratelimit-reset': String(Math.ceil((Date.now() + 1) / 60_000) * 60),
  });
  response.end(body);
});

const NOT_FOUND = JSON.stringify({ code: 'not_found', message: 'There is no such animal.', status: 404 });

function bodyOf(id: number, search: URLSearchParams): string {
  if (id > 0) return animals[id - 1] ? JSON.stringify(animals[id - 1]) : NOT_FOUND;
  const status = search.get('status');
  const matching = status ? animals.filter((animal) => animal.status === status) : animals;
  return JSON.stringify(matching.slice(0, Math.min(LISTED, Number(search.get('limit') ?? 20))));
}

process.on('message', () => process.send?.({ kind: 'calls', calls }));
server.listen(Number(process.env['PORT']), '127.0.0.1');
