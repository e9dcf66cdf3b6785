import { fileURLToPath } from 'node:url';
import type { Clock } from '../../src/clock.ts';
import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { GatewayOptions } from '../../src/gateway-options.ts';
import { LIMITS } from '../../src/limits.ts';
import { listen } from '../../src/server/listener.ts';
import type { RequestHandler } from '../../src/server/listener.ts';
import { createNodeHandler } from '../../src/server/node-handler.ts';
import { createMemoryLog } from '../support/memory-log.ts';
import { LARGE_STORE, startEchoUpstream } from './echo-upstream.ts';
import type { Arrival } from './echo-upstream.ts';
import { exchangeBytes, exchangeInProcess } from './exchange.ts';
import type { HttpAnswer } from './exchange.ts';
import { announcedBy, expectAlike, expectNoSecret, kindOf } from './judge.ts';
import type { Message } from './messages.ts';

/** What is fuzzed: gateways in this process, over an upstream that writes down what arrives. */
export interface Subject {
  /** How many answers of each kind there were. */
  readonly kinds: ReadonlyMap<string, number>;
  /** How many calls the upstream saw. */
  readonly calls: number;
  /** Each of them throws an Error where something is not as it has to be. */
  tryMessage(message: Message, where: Where): Promise<void>;
  tryBytes(bytes: Buffer): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Whose keys are used: those that callers bring, or one of the server's, with batches and a hidden schema besides. */
export type Where = 'callers' | 'server';

const SERVER_KEY = 'the-key-of-the-server';
/** Starts with a minute, and has no other one for hours: the two ways may be asked on either side of it. */
const SLOW: Clock = {
  now: () => Date.UTC(2027, 0, 1) + SLOW.elapsed(),
  elapsed: () => performance.now() / 1_000,
};
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SERVER: Partial<GatewayOptions> = {
  petApiKey: SERVER_KEY,
  maxBatch: 3,
  introspection: false,
  corsOrigins: ['https://a.example'],
};

const LATE_CASES = 100;

/** What petql may say to the service. */
const SENT_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'authorization',
  'accept',
  'user-agent',
  'traceparent',
  'tracestate',
  'content-type',
  'content-length',
]);

export async function startSubject(): Promise<Subject> {
  const upstream = await startEchoUpstream();
  const { log, lines } = createMemoryLog();
  const gateways: Gateway[] = [];
  const open = (name: string, options: Partial<GatewayOptions>): Gateway => {
    const gateway = createGateway({
      petApiUrl: `${upstream.origin}/${name}/v1`,
      // None of it runs out, so that an operation that is refused was refused for what it is.
      plan: { perMinute: 10_000_000, perDay: 100_000_000, known: true },
      freshUpstream: true,
      maxAgeMs: 3_600_000,
      maxStaleMs: 3_600_000,
      clock: SLOW,
      log: { info() {}, warn: log.warn.bind(log), error: log.error.bind(log) },
      ...options,
    });
    gateways.push(gateway);
    return gateway;
  };
  const sides = Object.fromEntries(
    Object.entries({ callers: {}, server: SERVER } satisfies Record<Where, Partial<GatewayOptions>>).map(
      ([name, options]) => [
        name,
        {
          fast: open(`${name}-fast`, options).handle,
          yoga: createNodeHandler(open(`${name}-yoga`, options).fetch, LIMITS.maxBodyBytes.fallback),
          cold: open(`${name}-cold`, options).handle,
        },
      ],
    ),
  ) as Record<Where, { fast: RequestHandler; yoga: RequestHandler; cold: RequestHandler }>;
  const listener = await listen(sides.callers.fast, { host: '127.0.0.1', port: 0 });
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
    async tryMessage(template, where) {
      const key = newKey();
      const message = withKey(template, key);
      const { fast, yoga, cold } = sides[where];
      const ofFast = await exchangeInProcess(fast, message);
      const arrivals = arrived(message, where);
      const ofYoga = await exchangeInProcess(yoga, message);
      const alsoArrived = arrived(message, where);
      count(kindOf(ofFast));
      for (const answer of [ofFast, ofYoga]) expectHarmless(answer, [key, SERVER_KEY]);
      expectAlike(ofFast, ofYoga);
      expectEqual('calls past Yoga and of Yoga', arrivals.length, alsoArrived.length);
      const wantsNothing = message.headers.some(([name, text]) => name === 'petql-dry-run' && text.trim() !== '0');
      if (wantsNothing) expectEqual('calls of a dry run', arrivals.length, 0);
      else if (arrivals.length > 0 && where === 'callers') {
        const price = await exchangeInProcess(cold, {
          ...message,
          headers: [...message.headers, ['petql-dry-run', '1']],
        });
        expectEqual('calls of a dry run', arrived(message, where).length, 0);
        if (announcedBy(price) < arrivals.length) {
          throw new Error(`${arrivals.length} calls, and ${announcedBy(price)} announced`);
        }
      }
    },
    async tryBytes(template) {
      const key = newKey();
      const bytes = Buffer.from(template.toString('latin1').replaceAll('KEY', key), 'latin1');
      const text = await exchangeBytes(listener.origin, bytes);
      for (const [, status = ''] of text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)) {
        count(`raw ${status}`);
        // Those of Node's own parser are among them.
        if (Number(status) >= 500 && status !== '504') throw new Error(`a status that petql does not have: ${status}`);
      }
      if (text === '') count('raw, no answer');
      expectNoSecret(text, [key, upstream.origin, ROOT]);
      if (text.includes('INTERNAL_SERVER_ERROR')) throw new Error('a fault that nobody foresaw');
      // The key is of the bytes, and may have been cut or mixed up with others of them. What was given up may arrive late.
      recent.push(bytes.toString('latin1'));
      recent.splice(0, recent.length - LATE_CASES);
      for (const { headers } of arrivedSince()) {
        const [, sent = ''] = /^Bearer (\S+)$/.exec(headers.authorization ?? '') ?? [];
        if (!recent.some((one) => one.includes(sent))) throw new Error('a key that nobody sent');
      }
      expectNoFault();
    },
    async [Symbol.asyncDispose]() {
      await listener.stop(0);
      for (const gateway of gateways) await gateway.close();
      await upstream[Symbol.asyncDispose]();
    },
  };

  function newKey(): string {
    keys += 1;
    return `key-${String(keys).padStart(7, '0')}${keys % 2 ? LARGE_STORE : ''}`;
  }

  function arrivedSince(): Arrival[] {
    const arrivals = upstream.arrivals.splice(0);
    calls += arrivals.length;
    for (const { headers } of arrivals) {
      const stranger = Object.keys(headers).find((name) => !SENT_HEADERS.has(name));
      if (stranger !== undefined) throw new Error(`a header that petql does not send: ${stranger}`);
    }
    return arrivals;
  }

  function arrived(message: Message, where: Where): Arrival[] {
    const allowed = where === 'server' ? SERVER_KEY : keyOf(message);
    const arrivals = arrivedSince();
    for (const { headers } of arrivals) {
      expectEqual('the key that was sent', headers.authorization, allowed && `Bearer ${allowed}`);
    }
    return arrivals;
  }

  function expectHarmless(answer: HttpAnswer, secrets: readonly string[]): void {
    const text = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n') + answer.body;
    expectNoSecret(text, [...secrets, upstream.origin, ROOT]);
    kindOf(answer);
    expectNoFault();
  }

  function expectNoFault(): void {
    const [fault] = lines;
    if (fault) throw new Error(`the log says: ${JSON.stringify(fault)}`);
  }
}

/** The only key that a message may be taken for. */
function keyOf({ headers }: Message): string | undefined {
  const all = headers.filter(([name]) => name === 'authorization').map(([, text]) => text.trim());
  const [scheme = '', ...rest] = (all[0] ?? '').split(/ +/);
  const [key = ''] = rest;
  const isKey = rest.length === 1 && key.length <= 512 && [...key].every((letter) => letter > ' ' && letter <= '~');
  return all.length === 1 && scheme.toLowerCase() === 'bearer' && isKey ? key : undefined;
}

function withKey(message: Message, key: string): Message {
  const headers = message.headers.map(([name, text]) => [name, text.replaceAll('KEY', key)] as const);
  return { ...message, headers };
}

function expectEqual(what: string, came: unknown, expected: unknown): void {
  if (came !== expected) throw new Error(`${what}: ${JSON.stringify(came)} instead of ${JSON.stringify(expected)}`);
}
