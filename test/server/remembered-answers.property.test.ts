import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import type { IncomingMessage } from 'node:http';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import { createGateway } from '../../src/gateway.ts';
import type { Gateway } from '../../src/gateway.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { seedAnimals } from '../../src/sandbox/seed.ts';
import { listen } from '../../src/server/listener.ts';
import { createNodeHandler } from '../../src/server/node-handler.ts';
import { startRecordedSandbox } from '../support/start-recorded-sandbox.ts';

/** Yoga alone runs every operation; the way past it gives answers again that it has given before. */
test('no answer differs from that of an operation that is run anew, whatever is asked, written and waited in between', async () => {
  let given = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), fc.boolean(), async (steps, isLarge) => {
      const clock = createStepClock();
      // A listing of a small store tells all of it.
      const sandbox = { clock, ...(isLarge ? {} : { seeds: seedAnimals().slice(0, 40) }) };
      await using pastYoga = await startSide(sandbox, ({ handle }) => handle);
      await using ofYoga = await startSide(sandbox, ({ fetch }) => createNodeHandler(fetch, 100_000));
      const answers: { past: Exchanged; of: Exchanged }[] = [];
      const seen = new Set<string>();
      for (const one of steps) {
        if (one.kind === 'wait') {
          clock.advance(one.ms);
          continue;
        }
        const past = await pastYoga.ask(one);
        answers.push({ past, of: await ofYoga.ask(one) });
        const told = JSON.stringify([one, past.data]);
        if (seen.has(told)) given += 1;
        seen.add(told);
      }
      expect(answers.map(({ past }) => past)).toEqual(answers.map(({ of }) => of));
      expect(pastYoga.calls()).toEqual(ofYoga.calls());
    }),
    { numRuns: 40 },
  );
  // Or nothing was looked at.
  expect(given).toBeGreaterThan(50);
}, 120_000);

const QUERIES = [
  '{ pets(limit: 2) { id name } }',
  '{ pets(status: SOLD) { id } more: pets(limit: 100) { name status } }',
  '{ pet(id: "1") { name } none: pet(id: "4711") { name } }',
  '{ petsById(ids: ["2", "3", "101"]) { id name } }',
  '{ __typename }',
  '{ pets(limit: 1) { id } rateLimit { windows { remaining } } }',
  '{ pets(limit: 1) { id } pet(id: "x") { id } }',
  'mutation { createPet(input: { name: "Rex", categoryId: 1 }) { pet { id } } }',
  'mutation { createPet(input: { name: "Lost", categoryId: 1 }) { pet { id } } }',
] as const;

interface Ask {
  readonly kind: 'ask';
  readonly key: string;
  readonly query: string;
  readonly cacheControl: string | undefined;
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record<Ask>({
      kind: fc.constant('ask'),
      key: fc.constantFrom('demo-pro', 'demo-business'),
      query: fc.constantFrom(...QUERIES),
      cacheControl: fc.constantFrom(undefined, undefined, undefined, 'max-age=1', 'no-cache', 'only-if-cached'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 900, 2_500, 20_000) }),
  },
);

function createStepClock() {
  const startMs = Date.UTC(2026, 0, 1);
  let elapsedMs = 0;
  return {
    now: () => startMs + elapsedMs,
    elapsed: () => elapsedMs,
    advance(ms: number) {
      elapsedMs += ms;
    },
  };
}

interface SideOptions extends SandboxOptions {
  readonly clock: Clock;
}

async function startSide(options: SideOptions, handlerOf: (gateway: Gateway) => Gateway['handle']) {
  const sandbox = await startRecordedSandbox(options);
  // Whether it is added stays unknown.
  sandbox.setFault(({ body }) => (body.includes('Lost') ? { status: 500 } : undefined));
  const gateway = createGateway({ petApiUrl: sandbox.url, clock: options.clock, maxAgeMs: 5_000 });
  const listener = await listen(handlerOf(gateway), { host: '127.0.0.1', port: 0 });
  return {
    ask: ({ key, query, cacheControl }: Ask) => exchange(listener.origin, { key, query, cacheControl }),
    calls: () => sandbox.calls,
    async [Symbol.asyncDispose]() {
      await listener.stop(0);
      await gateway.close();
      await sandbox.close();
    },
  };
}

type Exchanged = Awaited<ReturnType<typeof exchange>>;

/** Everything but the date and the id of the request. */
async function exchange(origin: string, { key, query, cacheControl }: Omit<Ask, 'kind'>) {
  const request = httpRequest(`${origin}/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
      ...(cacheControl === undefined ? {} : { 'cache-control': cacheControl }),
    },
  });
  request.end(JSON.stringify({ query }));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const text = Buffer.concat((await response.toArray()) as Buffer[]).toString();
  const { date: _date, 'x-request-id': _id, ...headers } = response.headers;
  const { data, errors, extensions } = JSON.parse(text) as Record<string, unknown>;
  return { status: response.statusCode, headers, data, errors, extensions };
}
