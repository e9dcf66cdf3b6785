import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { post } from '../support/client.ts';
import { figureOf, metricsOf } from '../support/fleet.ts';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { startSlowBody } from '../support/slow-body.ts';
import type { SlowBody } from '../support/slow-body.ts';

/** Room for large bodies of 16 MB together. */
const SMALL_HEAP = ['--max-old-space-size=120', '--max-semi-space-size=4'];
const LENGTH = 61_440;
const PART = Buffer.alloc(60_000, ' ');
const MANY = 1_500;
/** All that the bodies hold would be 90 MB. */
const MAX_GROWN_MB = 70;
const AT_ONCE = 100;
const PAUSE_MS = 5;

const NAMED = '{ __typename }';
/** A query that is as long as a body may be. */
const LARGE = `{ __typename } #${'x'.repeat(60_000)}`;
const BUSY = {
  status: 503,
  errors: [{ extensions: { code: 'RATE_LIMITED', retryAfterMs: 1_000, retryAt: expect.any(String) } }],
};

let petql: PetqlProcess;
const slow: SlowBody[] = [];

beforeAll(async () => {
  petql = await startPetql(['--port', '0', '--admin-port', '0', '--log-level', 'silent'], { nodeOptions: SMALL_HEAP });
});
afterAll(async () => {
  petql.kill('SIGTERM');
  expect(await petql.exited).toBe(0);
});

const ask = (document: string) => post(petql.address, document, { headers: { authorization: null } });
const residentMb = async () => figureOf(await metricsOf(petql), 'process_resident_memory_bytes') / 1e6;

async function start(count: number, part: Buffer | string, length?: number): Promise<void> {
  for (let sent = 0; sent < count; sent += 1) {
    slow.push(startSlowBody(petql.address, part, length));
    if (sent % AT_ONCE === 0) await ask(NAMED);
  }
}

async function leave(): Promise<void> {
  for (const body of slow.splice(0)) body.destroy();
  await expect.poll(async () => (await ask(LARGE)).status).toBe(200);
}

test('bodies that are never sent to their end take a bound of memory together, and others are answered', async () => {
  for (let warmUp = 0; warmUp < 100; warmUp += 1) await ask(NAMED);
  const before = await residentMb();
  await start(MANY, PART, LENGTH);

  const isRefused = ({ response }: SlowBody) => /^HTTP\/1\.1 503 .*"RATE_LIMITED"/s.test(response);
  await expect.poll(() => slow.filter(isRefused).length).toBeGreaterThan(MANY / 2);
  const refused = slow.find(isRefused);
  expect(refused?.response).toMatch(/^retry-after: 1\r$/im);
  expect(refused?.response).toMatch(/^connection: close\r$/im);

  for (let asked = 0; asked < 20; asked += 1) expect(await ask(NAMED)).toMatchObject({ status: 200 });
  expect(await ask(LARGE)).toMatchObject(BUSY);
  expect((await residentMb()) - before).toBeLessThan(MAX_GROWN_MB);

  await leave();
});

test('a body in chunks of a byte counts as what it takes', async () => {
  await start(20, '1\r\nx\r\n'.repeat(60_000));
  await expect
    .poll(() => slow.map(({ response }) => response))
    .toContainEqual(expect.stringMatching(/^HTTP\/1\.1 503/));
  expect(await ask(NAMED)).toMatchObject({ status: 200 });
  await leave();
});

test('a client whose body was refused can send the rest of it', async () => {
  await start(400, PART, LENGTH);
  await expect.poll(() => slow.some(({ response }) => response !== '')).toBe(true);
  const refused = slow.find(({ response }) => response !== '');
  const early = await Promise.race([refused?.closed, setTimeout(100, 'open')]);
  expect(early).toBe('open');
  refused?.send(' '.repeat(LENGTH - PART.length));
  await refused?.closed;
  await leave();
});

test('a body gives its memory back, however its request ends', async () => {
  const requests = 1_000;
  const endings: (() => Promise<unknown>)[] = [
    () => ask(LARGE),
    () => ask(`{ none } #${'x'.repeat(60_000)}`),
    () => fetch(petql.address, { method: 'POST', body: `[${'x'.repeat(60_000)}` }),
    () => fetch(petql.address, { method: 'POST', body: 'x'.repeat(70_000) }).catch(() => {}),
    async () => {
      const body = startSlowBody(petql.address, PART, LENGTH);
      await setTimeout(PAUSE_MS);
      body.destroy();
    },
  ];
  for (let sent = 0; sent < requests; sent += 20) {
    await Promise.all(Array.from({ length: 20 / endings.length }, () => endings.map((end) => end())).flat());
  }
  await leave();
  expect(await Promise.all(Array.from({ length: 50 }, () => ask(LARGE)))).toMatchObject(
    Array.from({ length: 50 }, () => ({ status: 200 })),
  );
});
