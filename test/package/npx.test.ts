import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { npmEnvironment, packInto } from './consumer-project.ts';

let folder: string;
let tarball: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-npx-'));
  tarball = await packInto(folder);
}, 120_000);
afterAll(() => rm(folder, { recursive: true }));

test('npx with an empty cache starts petql over the sandbox, says so first, and serves GraphQL and GraphiQL', async () => {
  // As `npx petql`, but for where the package comes from and the port.
  const npx = spawn('npx', ['--yes', '--package', tarball, 'petql'], {
    cwd: folder,
    env: { ...npmEnvironment(), NODE_ENV: '', PORT: '0', npm_config_cache: join(folder, 'cache') },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  let errors = '';
  npx.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const endpoint = await new Promise<string>((resolve, reject) => {
    npx.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const found = /^curl -s (\S+)/m.exec(output)?.[1];
      if (found) resolve(found);
    });
    npx.once('close', (code) => reject(new Error(`it ended with ${code}: ${output}${errors}`)));
  });
  const ended = once(npx, 'close');
  try {
    const { version } = packageJson;
    expect(output.split('\n')[0]).toBe(`petql ${version}: GraphQL gateway over a sandbox, not the real pet API`);
    expect(errors).not.toMatch(/warn/i);

    const headers = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };
    const body = JSON.stringify({ query: '{ pets(limit: 1) { id } }' });
    const response = await fetch(endpoint, { method: 'POST', headers, body });
    expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });
    const page = await (await fetch(endpoint, { headers: { accept: 'text/html' } })).text();
    const script = await fetch(new URL(/<script src="([^"]+)"/.exec(page)?.[1] ?? 'none', endpoint));
    expect((await script.text()).length).toBeGreaterThan(1_000_000);
  } finally {
    if (npx.pid) process.kill(-npx.pid, 'SIGTERM');
    await ended;
  }
}, 120_000);
