import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { freePort } from '../support/serve.ts';
import { buildImage } from './dockerfile.ts';
import type { Image } from './dockerfile.ts';

let image: Image;

beforeAll(async () => {
  image = await buildImage(fileURLToPath(new URL('../../', import.meta.url)));
}, 180_000);
afterAll(() => rm(image.root, { recursive: true }));

test('the image holds production dependencies only', async () => {
  const modules = await readdir(join(image.root, image.workdir, 'node_modules'));
  expect(modules).toEqual(expect.arrayContaining(['graphql-yoga', 'graphql', 'undici', 'dataloader']));
  for (const name of Object.keys(packageJson.devDependencies)) expect(modules).not.toContain(name);
});

test('the image does not run as root, which Kubernetes can check, and listens to the outside', () => {
  expect(image.user).toBe('1000');
  expect(image.env['HOST']).toBe('0.0.0.0');
});

test('the image answers, is healthy while it runs, and stops cleanly, where it may write nothing', async () => {
  const [program = '', ...args] = image.entrypoint;
  const cwd = join(image.root, image.workdir);
  // Much as `docker run --read-only` has it: nothing opens a file to write, starts a process or loads an addon.
  // Node.js 24 has no such permission, and leaves the network open.
  const network = process.allowedNodeEnvironmentFlags.has('--allow-net') ? ' --allow-net' : '';
  const locked = { NODE_OPTIONS: `--permission --allow-fs-read=*${network}` };
  const env = { ...image.env, ...locked, PATH: process.env['PATH'] ?? '', PORT: String(await freePort()) };
  const isHealthy = () => {
    const [command = '', ...rest] = image.healthcheck;
    return promisify(execFile)(command, rest, { cwd, env }).then(Boolean, () => false);
  };
  expect(await isHealthy()).toBe(false);

  const container = spawn(program, [...args, '--sandbox'], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(container.stdout, 'data');
  expect(await isHealthy()).toBe(true);
  const response = await fetch(`http://127.0.0.1:${env.PORT}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer demo-free' },
    body: '{"query":"{ pets(limit: 1) { id } }"}',
  });
  expect(await response.json()).toMatchObject({ data: { pets: [{ id: '1' }] } });

  container.kill('SIGTERM');
  expect(await once(container, 'close')).toEqual([0, null]);
});
