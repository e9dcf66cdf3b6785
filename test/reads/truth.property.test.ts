import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { petSeeds } from '../support/pet-api/pet-store.ts';
import { chooseSeed } from '../support/seed.ts';
import { startEmbedded } from '../support/start-gateway.ts';

const apiKey = 'demo-enterprise';
const parameters = { numRuns: 10, seed: chooseSeed(), endOnFailure: true };
/** How far the moments that a client sees may be from those of the gateway. */
const TOLERANCE_MS = 5;

const read = fc.record({
  kind: fc.constant('read' as const),
  /** A list, or the pet that is added as the first, the second and so on. */
  what: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('all' as const, 'sold' as const) },
    { weight: 2, arbitrary: fc.nat(4) },
  ),
  cacheControl: fc.constantFrom(undefined, undefined, undefined, 'no-cache', 'max-age=1', 'max-age=0'),
});
type Read = typeof read extends fc.Arbitrary<infer T> ? T : never;
/** A write that is over while a call is under way which was sent before it, and reads before and after that call is over. */
const overtaking = fc
  .tuple(read, fc.option(read), read)
  .map(
    ([early, late, last]) =>
      [
        early,
        { kind: 'pause', ms: 4 },
        { kind: 'awaited write' },
        ...(late ? [late] : []),
        { kind: 'pause', ms: 50 },
        { ...last, cacheControl: 'max-age=1' },
      ] as const,
  );
const step = fc.oneof(
  { weight: 6, arbitrary: read },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('write' as const, 'awaited write' as const, 'foreign' as const) }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('pause' as const), ms: fc.constantFrom(2, 8, 25) }) },
);
const scenario = fc.record({
  pets: fc.constantFrom(3, 60, 97, 150),
  steps: fc
    .array(fc.oneof({ weight: 6, arbitrary: step.map((one) => [one]) }, { weight: 1, arbitrary: overtaking }), {
      minLength: 4,
      maxLength: 20,
      size: 'max',
    })
    .map((groups) => groups.flat()),
  /** What becomes of the calls that read, in turn. */
  calls: fc.array(
    fc.record({ delayMs: fc.constantFrom(0, 15, 40), fails: fc.constantFrom(false, false, false, true) }),
    {
      minLength: 1,
      maxLength: 12,
    },
  ),
});

interface Added {
  readonly id: string;
  readonly byOwnKey: boolean;
  readonly doneAtMs: number;
}

test('an answer is as fresh as it says, and shows every earlier write of its key', async () => {
  await fc.assert(
    fc.asyncProperty(scenario, async ({ pets, steps, calls }) => {
      const given = petSeeds(pets, ['sold', 'available', 'available']);
      await using gateway = await startEmbedded({ maxAgeMs: 5, maxStaleMs: 100_000 }, { pets: given });
      let call = 0;
      gateway.petApi.fault = ({ method }) => {
        if (method !== 'GET') return undefined;
        const { delayMs = 0, fails } = calls[(call += 1) % calls.length] ?? {};
        return fails ? { delayMs, status: 503 } : { delayMs };
      };
      const added: Added[] = [];
      const wrong: string[] = [];
      const running: Promise<void>[] = [];
      for (const one of steps) {
        if (one.kind === 'pause') await sleep(one.ms);
        else if (one.kind === 'read') running.push(check(one));
        else if (one.kind === 'awaited write') await add(true);
        else running.push(add(one.kind === 'write'));
      }
      await Promise.all(running);
      expect(wrong).toEqual([]);

      async function add(byOwnKey: boolean): Promise<void> {
        const id = byOwnKey ? await addHere() : addElsewhere();
        if (id !== undefined) added.push({ id, byOwnKey, doneAtMs: performance.now() });
      }

      /** Returns no id where several kinds of reads fail, so that no create is sent. */
      async function addHere(): Promise<string | undefined> {
        const document = 'mutation { createPet(input: { name: "Neo", categoryId: 1, status: SOLD }) { pet { id } } }';
        const { data } = await gateway.execute({ document, apiKey });
        return (data as any).createPet?.pet.id;
      }

      function addElsewhere(): string {
        const body = '{"name":"Neo","categoryId":1,"status":"sold"}';
        const response = gateway.petApi.storeOf(apiKey).serve({ method: 'POST', path: '/pets', body });
        return String((JSON.parse(response.body) as { id: number }).id);
      }

      async function check({ what, cacheControl }: Read): Promise<void> {
        const wanted = typeof what === 'number' ? String(pets + 1 + what) : undefined;
        const list = what === 'all' ? 'pets(limit: 100)' : 'pets(status: SOLD, limit: 100)';
        const document = wanted ? `{ found: pet(id: "${wanted}") { id } }` : `{ found: ${list} { id } }`;
        const askedAtMs = performance.now();
        const before = added.filter(({ byOwnKey }) => byOwnKey);
        const { data, errors, extensions } = await gateway.execute({ document, apiKey, cacheControl });
        const endedAtMs = performance.now();
        if (errors) {
          const code = errors[0]?.extensions?.['code'];
          if (code !== 'DOWNSTREAM_SERVICE_ERROR') wrong.push(`${document}: ${String(code)}`);
          return;
        }
        const { oldestAgeMs } = (extensions as any).petql as { oldestAgeMs: number };
        const asOfMs = endedAtMs - oldestAgeMs - TOLERANCE_MS;
        if (cacheControl === 'no-cache' && asOfMs < askedAtMs - 2 * TOLERANCE_MS)
          wrong.push(`${document}: not called for`);
        const { found } = data as any;
        const shown = new Set<string>([found ?? []].flat().map(({ id }: { id: string }) => id));
        const isWhole = wanted !== undefined || what === 'sold' || pets < 75;
        const old = added.filter(({ doneAtMs }) => doneAtMs < asOfMs - TOLERANCE_MS);
        const missing = [...before, ...old].filter(({ id }) => (wanted ?? id) === id && !shown.has(id));
        if (isWhole && missing.length > 0) wrong.push(`${document}: misses ${JSON.stringify(missing)} at ${asOfMs}`);
      }
    }),
    parameters,
  );
});
