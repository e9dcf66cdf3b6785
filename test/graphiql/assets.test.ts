import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';

const closing = new AsyncDisposableStack();
afterAll(() => closing.disposeAsync());

/** Hertz of the times in /proc, on every Linux. */
const TICKS_PER_S = 100;
const FILES = ['graphiql.js', 'graphiql.css', 'editorWorkerService.js', 'graphql.js', 'json.js'];

async function start(preload = ''): Promise<PetqlProcess> {
  const nodeOptions = preload === '' ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`];
  const petql = await startPetql(['--port', '0'], { nodeOptions });
  closing.defer(async () => {
    petql.kill('SIGKILL');
    await petql.exited;
  });
  return petql;
}

const open = ({ address }: PetqlProcess) => fetch(address, { headers: { accept: 'text/html' } });

/** Gets the page and all of its files, as a browser does. Returns how long they are. */
async function visit(petql: PetqlProcess): Promise<number> {
  const page = await (await open(petql)).text();
  const folder = dirname(/<script src="([^"]+)"/.exec(page)?.[1] ?? '');
  const texts = FILES.map(async (name) => (await fetch(new URL(`${folder}/${name}`, petql.address))).text());
  return (await Promise.all(texts)).join('').length;
}

function costs({ pid }: PetqlProcess): { readonly maxMb: number; readonly cpuMs: number } {
  const [, maxKb] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ');
  return { maxMb: Number(maxKb) / 1_000, cpuMs: ((Number(fields[13]) + Number(fields[14])) * 1_000) / TICKS_PER_S };
}

test.runIf(process.platform === 'linux')('a visit costs little once its files are compressed', async () => {
  await visit(await start());
  const petql = await start();
  const answered = await fetch(petql.address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });
  expect(answered.status).toBe(400);
  const before = costs(petql);
  expect(await visit(petql)).toBeGreaterThan(8_000_000);
  const after = costs(petql);
  expect(after.maxMb - before.maxMb).toBeLessThan(12);
  expect(after.cpuMs - before.cpuMs).toBeLessThan(500);
});

test.each([
  ['a compressed file', '.gz', 'EMFILE'],
  ['another one', 'json.js.gz', 'EIO'],
  ['the version of GraphiQL', 'package.json', 'ENFILE'],
])('a visit that cannot read %s fails, and the next one does not', async (_what, name, code) => {
  await visit(await start());
  const petql = await start(`
    import fs from 'node:fs/promises';
    import { syncBuiltinESMExports } from 'node:module';
    const { readFile } = fs;
    let failures = 1;
    fs.readFile = async (path, ...rest) => {
      if (String(path).endsWith(${JSON.stringify(name)}) && failures-- > 0) {
        throw Object.assign(new Error('no file'), { code: ${JSON.stringify(code)} });
      }
      return readFile(path, ...rest);
    };
    syncBuiltinESMExports();
  `);
  expect((await open(petql)).status).toBe(500);
  expect((await open(petql)).status).toBe(200);
  expect(await visit(petql)).toBeGreaterThan(8_000_000);
});
