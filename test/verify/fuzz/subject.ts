import { fileURLToPath } from 'node:url';
import { createGateway } from '../../../src/index.ts';
import type { GatewayOptions } from '../../../src/index.ts';
import { listen } from '../../../src/server/listener.ts';
import { createMemoryLog } from '../../support/memory-log.ts';
import { createPetApi } from '../../support/pet-api/pet-api.ts';
import type { LoggedCall } from '../../support/pet-api/pet-api.ts';
import { createPetStore } from '../../support/pet-api/pet-store.ts';
import { UNLIMITED } from '../../support/pet-api/strict-plan.ts';
import { exchange, exchangeBytes } from './exchange.ts';
import type { HttpResponse } from './exchange.ts';
import type { Message } from './messages.ts';

/** What is fuzzed: gateways in this process, over a pet API that logs what arrives. */
export interface Subject {
  /** How many responses of each kind there were, such as `200 OK` or `400 LIMIT_EXCEEDED`. */
  readonly kinds: ReadonlyMap<string, number>;
  /** How many calls the upstream received. */
  readonly calls: number;
  /** @throws Error where a promise is broken. */
  readonly tryMessage: (message: Message, side: Side) => Promise<void>;
  /** @throws Error where a promise is broken. */
  readonly tryBytes: (bytes: Buffer) => Promise<void>;
}

/** Whose keys are used: those that callers bring, or the server's, with a hidden schema besides. */
export type Side = 'callers' | 'server';

const SERVER_KEY = 'the-key-of-the-server';
const SERVER = { petApiKey: SERVER_KEY, introspection: false, corsOrigins: ['https://a.example'] };
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LATE_CASES = 100;
/** Every second key sees more pets than one list shows. */
const STORE_SIZES = [40, 250] as const;

/** Headers that petql may send to the upstream. */
const SENT_HEADERS: ReadonlySet<string> = new Set(
  'host connection authorization accept accept-encoding cache-control user-agent traceparent tracestate content-type content-length'.split(
    ' ',
  ),
);
/** Every code but INTERNAL_SERVER_ERROR. */
const CODES: ReadonlySet<unknown> = new Set(
  `BAD_USER_INPUT DOWNSTREAM_SERVICE_ERROR FORBIDDEN GATEWAY_TIMEOUT GRAPHQL_PARSE_FAILED GRAPHQL_VALIDATION_FAILED
  IDEMPOTENCY_UNAVAILABLE LIMIT_EXCEEDED NOT_CACHED OUTCOME_PENDING OUTCOME_UNKNOWN PERSISTED_DOCUMENT_NOT_FOUND
  PERSISTED_DOCUMENT_REQUIRED RATE_LIMITED UNAUTHENTICATED`.split(/\s+/),
);
/** 431 is Node's, for a path and headers over 16 KiB. */
const STATUSES: ReadonlySet<number> = new Set([
  200, 204, 294, 302, 400, 401, 403, 404, 405, 406, 413, 415, 422, 431, 504,
]);

export async function startSubject(resources: AsyncDisposableStack): Promise<Subject> {
  const stores = STORE_SIZES.map((size) => createPetStore({ size }));
  const petApi = createPetApi({
    planOf: () => UNLIMITED,
    storeOf: (key) => stores[Number(key.at(-1)) % 2] ?? createPetStore({ size: 1 }),
  });
  const { url } = resources.use(await petApi.listen());
  const { log, lines } = createMemoryLog();
  const [callers, server, cold] = [
    await open({}),
    await open(SERVER),
    // Its cache is empty, since it sends no calls.
    await open({}),
  ];
  const kinds = new Map<string, number>();
  const recent: string[] = [];
  let keys = 0;
  let calls = 0;
  const count = (kind: string) => kinds.set(kind, (kinds.get(kind) ?? 0) + 1);

  return {
    kinds,
    get calls() {
      return calls;
    },
    async tryMessage(template, side) {
      const key = newKey();
      const headers = template.headers.map(([name, text]) => [name, text.replaceAll('KEY', key)] as const);
      const message = { ...template, headers };
      const response = await exchange(side === 'server' ? server : callers, message);
      count(kindOf(response));
      expectNoSecret(JSON.stringify(response.headers) + response.body, [key, SERVER_KEY, new URL(url).origin, ROOT]);
      expectNoFault();
      const arrived = takeArrived();
      const allowed = side === 'server' ? SERVER_KEY : keyOf(message);
      for (const call of arrived) expectEqual('the key that was sent', call.key, allowed);
      const isDryRun = headers.some(([name, text]) => name === 'petql-dry-run' && !/^0?(?:, 0)*$/.test(text.trim()));
      if (isDryRun) expectEqual('calls of a dry run', arrived.length, 0);
      else if (arrived.length > 0 && side === 'callers') await expectCost(message, arrived.length);
    },
    async tryBytes(template) {
      const key = newKey();
      const bytes = Buffer.from(template.toString('latin1').replaceAll('KEY', key), 'latin1');
      const text = await exchangeBytes(callers, bytes);
      for (const [, status = ''] of text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)) {
        count(`raw ${status}`);
        // Those of Node's own parser are among them.
        if (Number(status) >= 500 && status !== '504') throw new Error(`a status that petql does not have: ${status}`);
      }
      expectNoSecret(text, [key, new URL(url).origin, ROOT]);
      if (text.includes('INTERNAL_SERVER_ERROR')) throw new Error('an unhandled error');
      // The key is of the bytes, and may have been cut or mixed up with others of them. An aborted call may arrive late.
      recent.push(bytes.toString('latin1'));
      recent.splice(0, recent.length - LATE_CASES);
      for (const call of takeArrived()) {
        if (!recent.some((one) => one.includes(call.key))) throw new Error('a key that no client sent');
      }
      expectNoFault();
    },
  };

  /** @returns the origin of a gateway. */
  async function open(options: Partial<GatewayOptions>): Promise<string> {
    const gateway = createGateway({
      petApiUrl: url,
      // It is never exhausted, so that an operation that is rejected was rejected for what it is.
      plan: '100000000/900000000',
      log: { info() {}, warn: log.warn.bind(log), error: log.error.bind(log) },
      ...options,
    });
    resources.defer(() => gateway.close());
    const listener = await listen(gateway.handle, { host: '127.0.0.1', port: 0 });
    resources.defer(() => listener.stop({ graceMs: 0 }));
    return listener.origin;
  }

  function newKey(): string {
    keys += 1;
    return `key-${String(keys).padStart(7, '0')}`;
  }

  /** A dry run announces at least the calls that the operation made. */
  async function expectCost(message: Message, made: number): Promise<void> {
    const headers = [...message.headers, ['petql-dry-run', '1'] as const];
    const method = message.method === 'HEAD' ? 'GET' : message.method;
    const { body } = await exchange(cold, { ...message, method, headers });
    expectEqual('calls of a dry run', takeArrived().length, 0);
    const announced = (JSON.parse(body) as Result).extensions?.petql?.dryRun?.upstreamCalls ?? 0;
    if (announced < made) throw new Error(`${made} calls, and ${announced} announced`);
  }

  function takeArrived(): LoggedCall[] {
    const arrived = petApi.log.splice(0);
    calls += arrived.length;
    const unknown = arrived.flatMap(({ headers }) => Object.keys(headers)).find((name) => !SENT_HEADERS.has(name));
    if (unknown !== undefined) throw new Error(`a header that petql does not send: ${unknown}`);
    return arrived;
  }

  function expectNoFault(): void {
    // A page of another origin is news for the operator; a request that is rejected is none.
    const fault = lines.find((line) => !('origin' in line));
    if (fault) throw new Error(`the log says: ${JSON.stringify(fault)}`);
  }
}

/** The only key that a message may be taken for. */
function keyOf({ headers }: Message): string | undefined {
  const joined = headers.flatMap(([name, text]) => (name === 'authorization' ? text.trim() : [])).join(', ');
  const lines = new Set(joined.split(',').map((line) => line.trim()));
  // Equal ones count once.
  const [text = ''] = lines.size === 1 ? lines : [joined];
  const [, key = ''] = /^bearer +([!-~]+)$/i.exec(text) ?? [];
  return key !== '' && key.length <= 512 ? key : undefined;
}

/** A response's body, as far as it is judged. */
interface Result {
  readonly errors?: readonly { readonly message: unknown; readonly extensions?: { readonly code?: unknown } }[];
  readonly extensions?: { readonly petql?: { readonly dryRun?: { readonly upstreamCalls: number } } };
}

/** @throws Error where it is no response that petql may send. */
function kindOf({ status, headers, body }: HttpResponse): string {
  if (!STATUSES.has(status)) throw new Error(`a status that petql does not have: ${status}`);
  const type = headers['content-type'] ?? '';
  if (!/^application\/(?:graphql-response\+)?json\b/.test(type)) return `${status} ${type.split(';')[0] || 'no body'}`;
  if (body === '') return `${status} no body`;
  const result = JSON.parse(body) as Result;
  if ('status' in result) return `${status} health`;
  if (!('data' in result || 'errors' in result)) throw new Error('neither data nor errors');
  if (result.errors === undefined) return `${status} OK`;
  if (result.errors.length === 0) throw new Error('an empty list of errors');
  for (const { message, extensions } of result.errors) {
    if (typeof message !== 'string' || message === '') throw new Error('an error without a message');
    if (!CODES.has(extensions?.code)) throw new Error(`an error with the code ${String(extensions?.code)}`);
  }
  return `${status} ${String(result.errors[0]?.extensions?.code)}`;
}

/** @throws Error where a text holds a secret, or shows the code. */
function expectNoSecret(text: string, secrets: readonly string[]): void {
  const secret = secrets.find((one) => text.includes(one));
  const trace = /\.[cm]?[jt]s:\d+|node_modules|\bat (?:async )?\w+ \(|ECONN\w+|RangeError|TypeError/.exec(text)?.[0];
  if (secret ?? trace) throw new Error(`the response holds ${JSON.stringify(secret ?? trace)}`);
}

function expectEqual(what: string, actual: unknown, expected: unknown): void {
  if (actual !== expected) throw new Error(`${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}
