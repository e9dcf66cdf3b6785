import { mkdtemp, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askDayUsed } from '../prove/ask-day-used.ts';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { startRecordedSandbox } from '../support/start-recorded-sandbox.ts';
import { until } from '../support/until.ts';

const KEY = 'demo-business';
const WRITERS = 8;
const ENOUGH = 40;
const TIMEOUT_MS = 60_000;
/** What kill -9 may take of the day's budget: more than was written a moment ago is kept in reserve. */
const RESERVE = 30;

let folder: string;
const running: PetqlProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-signals-'));
});
afterEach(async () => {
  for (const petql of running.splice(0)) {
    petql.kill('SIGKILL');
    await petql.exited;
  }
  await rm(folder, { recursive: true });
});

async function start(...args: string[]): Promise<PetqlProcess> {
  const petql = await startPetql(['--port', '0', '--plan', 'business', ...args]);
  running.push(petql);
  return petql;
}

/** The whole service and petql over it, in files. */
function startOverFiles(): Promise<PetqlProcess> {
  return start('--sandbox-file', join(folder, 'animals.db'), '--state-file', join(folder, 'state.db'));
}

/** The id, or the error's code; undefined where no answer came. */
async function create({ address }: PetqlProcess, name: string): Promise<string | undefined> {
  const input = `{ name: "${name}", categoryId: 1, idempotencyKey: "${name.replaceAll(' ', '-')}" }`;
  const response = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ query: `mutation { createPet(input: ${input}) { pet { id } } }` }),
  });
  const { data, errors }: any = await response.json();
  return data?.createPet?.pet.id ?? errors?.[0].extensions.code;
}

interface Written {
  /** The id, or the error's code, of each name that was answered. */
  readonly answered: ReadonlyMap<string, string>;
  /** Every name that was sent. */
  readonly sent: ReadonlySet<string>;
}

/** Writers that go on until petql does not answer any more, or `until` says so. */
async function write(petql: PetqlProcess, onEnough: () => unknown, over = () => false): Promise<Written> {
  const answered = new Map<string, string>();
  const sent = new Set<string>();
  let enough = false;
  await Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      for (let turn = 0; !over(); turn += 1) {
        const name = `Pet ${writer} ${turn}`;
        sent.add(name);
        const told = await create(petql, name).catch(() => undefined);
        if (told === undefined) return;
        answered.set(name, told);
        if (enough || answered.size < ENOUGH) continue;
        enough = true;
        onEnough();
      }
    }),
  );
  return { answered, sent };
}

const isId = (told: string) => /^\d+$/.test(told);

/** How often each name is in the sandbox's file. */
function stored(): Map<string, number> {
  const database = new DatabaseSync(join(folder, 'animals.db'), { readOnly: true });
  const rows = database
    .prepare(
      "SELECT name, count(*) AS times FROM animals WHERE store = 'production' AND name LIKE 'Pet %' GROUP BY name",
    )
    .all();
  database.close();
  return new Map(rows.map(({ name, times }) => [String(name), Number(times)]));
}

describe.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)('%s under load', (signal) => {
  test(
    'loses nothing that was answered, adds nothing twice, and the next start goes on from there',
    async () => {
      const first = await startOverFiles();
      const { answered, sent } = await write(first, () => first.kill(signal));
      expect(await first.exited).toBe(signal === 'SIGKILL' ? 'SIGKILL' : 0);
      const created = [...answered].filter(([, told]) => isId(told));
      expect(created.length).toBeGreaterThanOrEqual(ENOUGH);

      const second = await startOverFiles();
      expect(second.output.stderr).toBe('');
      const used = await askDayUsed(second.address, KEY);
      const mayBeLost = signal === 'SIGKILL' ? RESERVE : 0;
      expect(used).toBeGreaterThanOrEqual(created.length - mayBeLost);
      expect(used).toBeLessThanOrEqual(sent.size);
      const again = created.map(async ([name]) => [name, await create(second, name)]);
      expect(await Promise.all(again)).toEqual(created);
      // Of whom nobody was answered may be there or not; nobody knows, and nobody is added again.
      await Promise.all([...sent].filter((name) => !answered.has(name)).map((name) => create(second, name)));
      const times = stored();
      for (const [name] of created) expect([name, times.get(name)]).toEqual([name, 1]);
      expect([...times.values()].every((each) => each === 1)).toBe(true);
    },
    TIMEOUT_MS,
  );
});

test(
  'a process that was stopped and goes on answers everybody, and adds nothing twice',
  async () => {
    const petql = await startOverFiles();
    let over = false;
    const stopAndGo = async () => {
      petql.kill('SIGSTOP');
      await new Promise((resolve) => {
        setTimeout(resolve, 2_000);
      });
      petql.kill('SIGCONT');
      over = true;
    };
    const { answered, sent } = await write(petql, stopAndGo, () => over);
    expect(answered.size).toBe(sent.size);
    const created = [...answered].filter(([, told]) => isId(told));
    const times = stored();
    for (const [name] of created) expect([name, times.get(name)]).toEqual([name, 1]);
    expect(await Promise.all(created.map(async ([name]) => [name, await create(petql, name)]))).toEqual(created);
    expect([...times.values()].every((each) => each === 1)).toBe(true);
    expect(new Set([...answered.values()].filter((told) => !isId(told)))).toEqual(new Set());
  },
  TIMEOUT_MS,
);

/** petql over a service that answers a creation after so long, and a creation that is on its way there. */
async function createSlowly(delayMs: number) {
  const sandbox = await startRecordedSandbox();
  const petql = await start('--pet-api-url', sandbox.url, '--upstream-timeout-ms', '60000');
  sandbox.setFault(() => ({ delayMs }));
  const told = create(petql, 'Pet of the slow').catch(() => 'lost');
  await until(() => sandbox.calls.length > 0 || petql.output.stderr !== '');
  return { sandbox, petql, told };
}

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const)(
  'a second %s ends it at once, with exit code %i',
  async (signal, code) => {
    const { sandbox, petql, told } = await createSlowly(60_000);
    petql.kill(signal);
    // It has heard the first once it takes no connections any more.
    await until(() =>
      fetch(petql.address, { headers: { connection: 'close' } }).then(
        () => false,
        () => true,
      ),
    );
    const asking = setInterval(() => petql.kill(signal), 100);
    const asked = performance.now();
    expect(await petql.exited).toBe(code);
    clearInterval(asking);
    // The grace would have been seven.
    expect(performance.now() - asked).toBeLessThan(6_000);
    expect(await told).toBe('lost');
    await sandbox.close();
  },
  TIMEOUT_MS,
);

// Where npm's shell is bash, Ctrl-C reaches petql from the terminal and from npm: that cut running creations.
test(
  'a signal that comes twice in one moment is one: what runs goes on to its end',
  async () => {
    const { sandbox, petql, told } = await createSlowly(2_000);
    petql.kill('SIGINT');
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    petql.kill('SIGINT');
    expect(await told).toMatch(/^\d+$/);
    expect(await petql.exited).toBe(0);
    await sandbox.close();
  },
  TIMEOUT_MS,
);
