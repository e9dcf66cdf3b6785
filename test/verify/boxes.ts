import { setTimeout as sleep } from 'node:timers/promises';
import { post } from '../support/client.ts';
import { createRandom } from '../support/random.ts';
import { Tally, rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { isInstalled } from './boxes/box.ts';
import type { BoxKind } from './boxes/box.ts';
import { createPets, openLaboratory } from './boxes/laboratory.ts';
import type { Laboratory } from './boxes/laboratory.ts';
import type { Check, CheckOptions, Suite } from './suite.ts';

/** nginx before a server, with connections that it keeps. */
const NGINX = `upstream api { server UPSTREAM; keepalive 16; }
  server {
    listen 127.0.0.1:PORT;
    LIMIT
    location / { proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection ""; }
  }`;
const NGINX_LIMIT = NGINX.replace('LIMIT', 'limit_req zone=calls burst=5 nodelay; limit_req_status 429;').replace(
  'upstream',
  'limit_req_zone $binary_remote_addr zone=calls:1m rate=10r/s;\n  upstream',
);
const MAINTENANCE = `server { listen 127.0.0.1:PORT; location / { return 503; } }`;

const HAPROXY = `  timeout http-keep-alive 2s
  http-reuse always
frontend in
  bind 127.0.0.1:PORT
  LIMIT
  default_backend api
backend api
  server one UPSTREAM`;
const HAPROXY_LIMIT = HAPROXY.replace(
  'LIMIT',
  `stick-table type ip size 1k expire 10s store http_req_rate(1s)
  http-request track-sc0 src
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 10 }`,
);
/** A 503 of HAProxy: its server is a port where nothing listens. */
const HAPROXY_DOWN = HAPROXY.replace('UPSTREAM', '127.0.0.1:9');

/** A cache that heeds no Cache-Control of a request, as Varnish does. */
const VARNISH = `backend api { .host = "UPSTREAM_HOST"; .port = "UPSTREAM_PORT"; }
sub vcl_recv { if (req.method == "GET") { return (hash); } return (pass); }
sub vcl_hash { hash_data(req.http.Authorization); }
sub vcl_backend_response { if (bereq.method == "GET") { unset beresp.http.Cache-Control; set beresp.ttl = 20s; } }`;
/** As it comes: it caches nothing with an Authorization, and passes POST on. */
const VARNISH_PLAIN = `backend api { .host = "UPSTREAM_HOST"; .port = "UPSTREAM_PORT"; }`;

const without = (config: string) => config.replace('LIMIT', '');
const FEW_429 = 'a limit by address that nothing tells stops no key for good';
const SEEN = 'a client sees what it has created at once, and data has the age of the cache';
const PAGES = 'while a box answers for the pet API, errors and the log say so without its page, and reads recover';
const OWN = 'through a box, each client gets its own data and its own errors';
const LEFT_OUT = 'boxes of this check are installed';

/** petql behind and before real boxes. */
export const boxes: Suite = {
  about: 'puts petql behind and before real nginx, HAProxy and Varnish',
  checks: [
    limit('nginx', NGINX_LIMIT),
    limit('haproxy', HAPROXY_LIMIT),
    check('nginx-reload', ['nginx'], 'a reload each half second loses and doubles no create', reload('nginx', NGINX)),
    check('haproxy-reload', ['haproxy'], 'the same of HAProxy', reload('haproxy', HAPROXY)),
    check(
      'nginx-keep-alive',
      ['nginx'],
      'a connection that nginx ends while a create comes costs no outcome',
      (resources, options) =>
        keepAlive(resources, options, 'nginx', without(NGINX).replace('location', 'keepalive_timeout 2s; location')),
    ),
    check('haproxy-keep-alive', ['haproxy'], 'the same of HAProxy', (resources, options) =>
      keepAlive(resources, options, 'haproxy', without(HAPROXY)),
    ),
    check('nginx-error-pages', ['nginx'], PAGES, (resources) =>
      errorPages(resources, 'nginx', without(NGINX), MAINTENANCE),
    ),
    check('haproxy-error-pages', ['haproxy'], PAGES, (resources) =>
      errorPages(resources, 'haproxy', without(HAPROXY), without(HAPROXY_DOWN)),
    ),
    check('varnish-cache', ['varnish'], SEEN, cache),
    check('nginx-front', ['nginx'], OWN, front('nginx', without(NGINX))),
    check('haproxy-front', ['haproxy'], OWN, front('haproxy', without(HAPROXY))),
    check('varnish-front', ['varnish'], OWN, front('varnish', VARNISH_PLAIN)),
    check('both', ['nginx', 'haproxy'], 'the same behind nginx and before HAProxy', async (resources, { seed }) => {
      const inner = ['haproxy', without(HAPROXY)] as const;
      const laboratory = await openLaboratory(resources, { inner, outer: ['nginx', without(NGINX)] });
      const load = { keys: 10, seconds: 5, everyMs: 200, maxUnknownPerMille: 0 };
      return createPets(laboratory, createRandom(seed), load);
    }),
  ],
};

type Run = (resources: AsyncDisposableStack, options: CheckOptions) => Promise<readonly Row[]>;

/** A check that is left out, and says so, where a box is not installed; in continuous integration that is a failure. */
function check(name: string, kinds: readonly BoxKind[], goal: string, run: Run): Check {
  return {
    name,
    goal,
    processes: 2 + kinds.length,
    async run(options) {
      const missing = kinds.filter((kind) => !isInstalled(kind));
      if (missing.length > 0) {
        options.print(`left out: ${name}. Install it: apt-get install ${missing.join(' ')}`);
        const problems = process.env['CI'] ? [`${missing.join(' and ')} not installed`] : [];
        return [rowOf({ promise: LEFT_OUT, looked: 0, problems, measured: 'left out' })];
      }
      await using resources = new AsyncDisposableStack();
      return await run(resources, options);
    },
  };
}

/** A limit of ten calls a second for petql's address, which no header tells: ten keys want more. */
function limit(kind: BoxKind, config: string): Check {
  return check(`${kind}-limit`, [kind], FEW_429, async (resources, { seed }) => {
    const laboratory = await openLaboratory(resources, { inner: [kind, config] });
    const load = { keys: 10, seconds: 30, everyMs: 300, maxUnknownPerMille: 0 };
    const rows = await createPets(laboratory, createRandom(seed), load);
    const paused = laboratory.petql.output.stderr.match(/answered 429; the key is paused/g)?.length ?? 0;
    const served = laboratory.petApi.log.length;
    const problems = served < 30 ? [`only ${served} calls got through in 30 s`] : [];
    const measured = `${served} calls got through, ${paused} pauses of ten keys in 30 s`;
    return [...rows, rowOf({ promise: FEW_429, looked: paused, problems, measured })];
  });
}

function reload(kind: BoxKind, config: string): Run {
  return async (resources, { seed }) => {
    const laboratory = await openLaboratory(resources, { inner: [kind, without(config)] });
    const load = { keys: 20, seconds: 15, everyMs: 300, maxUnknownPerMille: 30 };
    let isOver = false;
    const reloading = reloadUntil(laboratory, () => isOver);
    const rows = await createPets(laboratory, createRandom(seed), load);
    isOver = true;
    await reloading;
    return rows;
  };
}

async function reloadUntil({ inner }: Laboratory, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await inner?.reload();
    await sleep(200);
  }
}

/** The box closes idle connections after two seconds, and creates come at random moments around it. */
async function keepAlive(
  resources: AsyncDisposableStack,
  { seed }: CheckOptions,
  kind: BoxKind,
  config: string,
): Promise<readonly Row[]> {
  const laboratory = await openLaboratory(resources, { inner: [kind, config] });
  return createPets(laboratory, createRandom(seed), { keys: 60, seconds: 30, everyMs: 2_000, maxUnknownPerMille: 0 });
}

const LIST = '{ pets(limit: 100) { id } }';
const asKey = (key: string, more = {}) => ({ headers: { authorization: `Bearer ${key}`, ...more } });
/** So long is the longest pause between two tries. */
const RECOVERY_MS = 30_000;

/** @param down another configuration, with which the box answers for the pet API. */
async function errorPages(
  resources: AsyncDisposableStack,
  kind: BoxKind,
  config: string,
  down: string,
): Promise<readonly Row[]> {
  const row = new Tally(PAGES);
  const { petApi, petql, endpoint, inner } = await openLaboratory(resources, { inner: [kind, config] });
  const up = (await post(endpoint, LIST, asKey('known'))).errors;
  row.look(up && `before: ${JSON.stringify(up)}`);

  await inner?.reload(down);
  const before = petApi.log.length;
  for (let turn = 0; turn < 3; turn += 1) {
    const stale = await post(endpoint, LIST, asKey('known'));
    row.look(stale.errors && `cached data is not served: ${JSON.stringify(stale.errors)}`);
    const { errors } = await post(endpoint, LIST, asKey('known', { 'cache-control': 'no-cache', prefer: 'wait=1' }));
    const text = JSON.stringify(errors);
    row.look(errors && !/<html|<h1>/i.test(text) ? undefined : `a read without data: ${text}`);
    await sleep(500);
  }
  row.look(petApi.log.length === before ? undefined : 'the pet API was called meanwhile');
  const line = petql.output.stderr.split('\n').find((each) => each.includes('"calls to the pet API fail"')) ?? '';
  row.look(/"status":503.*"problem":"/.test(line) ? undefined : `the log says: ${line}`);
  row.look(/<html|<h1>/i.test(petql.output.stderr) ? 'the log has the page of the box' : undefined);

  await inner?.reload();
  const upMs = performance.now();
  for (;;) {
    const { errors } = await post(endpoint, LIST, asKey('known', { 'cache-control': 'no-cache', prefer: 'wait=1' }));
    const tookMs = performance.now() - upMs;
    row.measured = `reads work after ${Math.round(tookMs)} ms`;
    if (!errors) break;
    if (tookMs > RECOVERY_MS) {
      row.look(`no read works after ${RECOVERY_MS} ms: ${JSON.stringify(errors)}`);
      break;
    }
    await sleep(200);
  }
  return [row];
}

/** Varnish keeps lists and pets for 20 s, whatever a call says. */
async function cache(resources: AsyncDisposableStack): Promise<readonly Row[]> {
  const row = new Tally(SEEN);
  const { endpoint } = await openLaboratory(resources, { inner: ['varnish', VARNISH] });
  const ask = (query: string, cacheControl = 'no-cache') =>
    post(endpoint, query, asKey('key', { 'cache-control': cacheControl }));
  await ask(LIST);
  const startedMs = performance.now();
  const { data } = await ask('mutation { createPet(input: { name: "Ada", categoryId: 1 }) { pet { id } } }');
  const id = String(data?.['createPet'].pet.id);
  for (let second = 0; second < 12; second += 1) {
    const one = await ask(`{ pet(id: "${id}") { id } }`);
    const seen = one.data?.['pet']?.id;
    row.look(seen === id ? undefined : `after ${second} s the new pet is ${seen}: ${JSON.stringify(one.errors)}`);
    const { extensions, errors } = await ask(LIST);
    row.look(errors && JSON.stringify(errors));
    const ageMs = Number(extensions?.['petql'].oldestAgeMs);
    // Varnish tells its age in whole seconds, from its own response on.
    const dueMs = performance.now() - startedMs - 2_000;
    row.look(ageMs >= dueMs ? undefined : `after ${second} s a list is ${ageMs} ms old, ${Math.round(dueMs)} are due`);
    await sleep(1_000);
  }
  row.measured = `${row.looked} looks in 12 s`;
  return [row];
}

const KEYS = ['one', 'two', 'three'];
const LONG = 'x'.repeat(300_000);

/** Clients of three keys on connections that a box shares, beside bodies that petql does not read to their end. */
function front(kind: BoxKind, config: string): Run {
  return async (resources, { seed }) => {
    const own = new Tally(OWN);
    const laboratory = await openLaboratory(resources, { outer: [kind, config] });
    const { endpoint } = laboratory;
    for (const key of KEYS) {
      for (let pet = 0; pet < KEYS.indexOf(key); pet += 1)
        await post(
          endpoint,
          `mutation { createPet(input: { name: "${pet}", categoryId: 1 }) { pet { id } } }`,
          asKey(key),
        );
    }

    const endMs = performance.now() + 8_000;
    await Promise.all([...KEYS.map((key) => read(key)), ...KEYS.map((key) => sendTooMuch(key))]);
    const rows = await createPets(laboratory, createRandom(seed), {
      keys: 10,
      seconds: 5,
      everyMs: 200,
      maxUnknownPerMille: 0,
    });
    own.measured = `${own.looked} responses`;
    return [own, ...rows];

    async function read(key: string): Promise<void> {
      const pets = 30 + KEYS.indexOf(key);
      while (performance.now() < endMs) {
        const [byPost, byGet] = await Promise.all([
          post(endpoint, LIST, asKey(key)),
          fetch(`${endpoint}?query=${encodeURIComponent(LIST)}`, asKey(key)).then((response) => response.json() as any),
        ]);
        for (const { data, errors } of [byPost, byGet]) {
          const count = data?.pets?.length;
          own.look(count === pets ? undefined : `${key} got ${count} pets, ${pets} are due: ${JSON.stringify(errors)}`);
        }
      }
    }

    async function sendTooMuch(key: string): Promise<void> {
      while (performance.now() < endMs) {
        const { status } = await fetch(endpoint, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ query: LIST, variables: { LONG } }),
        });
        own.look(status === 413 ? undefined : `a body of 300 KB got ${status}`);
        await sleep(20);
      }
    }
  };
}
