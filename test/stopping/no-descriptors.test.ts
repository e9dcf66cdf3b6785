import { execFileSync } from 'node:child_process';
import { Agent, request } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';

const running: PetqlProcess[] = [];

afterEach(async () => {
  for (const petql of running.splice(0)) {
    petql.kill('SIGKILL');
    await petql.exited;
  }
});

/** A moment in which the process can open nothing. What it has open stays so. */
async function withoutDescriptors({ pid }: PetqlProcess, work: () => Promise<void>): Promise<void> {
  const prlimit = (...args: string[]) => execFileSync('prlimit', ['--pid', String(pid), ...args], { encoding: 'utf8' });
  const usual = prlimit('--nofile', '--noheadings', '--output', 'SOFT').trim();
  prlimit('--nofile=0:');
  await work();
  prlimit(`--nofile=${usual}:`);
}

/** On one connection, which is there before. */
function createAsk({ address }: PetqlProcess): (query: string) => Promise<{ status: number; body: any }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-pro' };
  return (query) =>
    new Promise((resolve, reject) => {
      request(address, { agent, method: 'POST', headers }, (response) => {
        response
          .toArray()
          .then(
            (chunks) =>
              resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }),
            reject,
          );
      })
        .on('error', reject)
        .end(JSON.stringify({ query }));
    });
}

test('a moment without file descriptors costs the requests of that moment, which the log tells of, and no later one', async () => {
  const petql = await startPetql(['--port', '0']);
  running.push(petql);
  const ask = createAsk(petql);
  expect((await ask('{ pets(limit: 1) { id } }')).status).toBe(200);
  const create = () => ask('mutation { createPet(input: { name: "Momo", categoryId: "3" }) { pet { name } } }');
  let id = '';
  await withoutDescriptors(petql, async () => {
    const { status, body } = await create();
    expect([status, body.errors[0].extensions.code]).toEqual([500, 'INTERNAL_SERVER_ERROR']);
    ({ id } = body.errors[0].extensions);
  });
  expect(petql.output.stderr).toContain(`"id":"${id}"`);
  expect((await create()).body).toMatchObject({ data: { createPet: { pet: { name: 'Momo' } } } });
  expect((await fetch(new URL('/health/live', petql.address))).status).toBe(200);
});
