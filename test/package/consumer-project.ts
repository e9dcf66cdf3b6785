import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import packageJson from '../../package.json' with { type: 'json' };

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

/** What a project has beside petql; petql's lock file is smaller without them. */
const BESIDE_PETQL = [
  '@graphql-typed-document-node/core@3.2.0',
  '@fastify/cors@11.4.3',
  '@graphql-tools/stitch@10.3.1',
  '@hono/node-server@2.1.8',
  '@opentelemetry/api@1.10.0',
  '@opentelemetry/context-async-hooks@3.1.0',
  '@opentelemetry/core@3.1.0',
  '@opentelemetry/instrumentation-undici@0.34.0',
  '@opentelemetry/sdk-trace@3.1.1',
  '@types/express@5.0.6',
  '@types/node@26.6.6',
  'esbuild@0.28.2',
  'express@5.3.0',
  'fastify@5.12.8',
  'hono@4.13.19',
  'jest@30.5.2',
  `vitest@${packageJson.devDependencies.vitest}`,
];

/** What a site of Next.js has beside petql. Its build checks types by TypeScript 5. */
export const BESIDE_NEXT = [
  '@types/node@24.19.2',
  '@types/react@19.3.0',
  'graphql@17.1.0',
  'next@16.4.6',
  'react@19.3.1',
  'react-dom@19.3.1',
  'typescript@5.9.3',
];

/** What wants graphql 16, and no other. */
export const BESIDE_GRAPHQL_16 = [
  '@apollo/server@5.5.1',
  '@apollo/subgraph@2.15.1',
  '@graphql-eslint/eslint-plugin@4.4.1',
  '@graphql-tools/stitch@10.3.1',
  '@graphql-typed-document-node/core@3.2.0',
  '@types/node@24.19.2',
  'eslint@10.15.0',
  'fastify@5.12.8',
  'graphql@^16.11.0',
  'mercurius@16.10.1',
];

/** A project of somebody else, with petql installed from what `npm publish` would send. */
export interface ConsumerProject {
  readonly folder: string;
  /** Runs a program in it to its end: what it printed, and its exit code. */
  readonly run: (program: string, ...args: string[]) => Promise<{ code: number; output: string }>;
  /** Starts a program in it, and resolves once it has printed what is waited for. */
  readonly start: (until: RegExp, env: Record<string, string>, ...command: string[]) => Promise<string>;
  /** Ends what runs in it and removes it. */
  readonly remove: () => Promise<void>;
}

/** What `npm publish` would send. */
export async function packPetql(): Promise<Buffer> {
  const root = await mkdtemp(join(tmpdir(), 'petql-package-'));
  try {
    return await readFile(await packInto(root));
  } finally {
    await rm(root, { recursive: true });
  }
}

/** Writes what `npm publish` would send into the folder, and returns the file. It is built in a copy: tests run side by side. */
export async function packInto(folder: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'petql-build-'));
  try {
    const isBuilt = (path: string) => /^(?:\.git|dist|node_modules)(?:\/|$)/.test(relative(ROOT, path));
    await cp(ROOT, copy, { recursive: true, filter: (path) => !isBuilt(path) });
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    await npm(copy, 'pack', '--pack-destination', folder);
  } finally {
    await rm(copy, { recursive: true });
  }
  return join(folder, `petql-${packageJson.version}.tgz`);
}

/** Installs the project in a folder beside this file, with petql and these packages. */
export async function installConsumer(name = 'consumer', beside = BESIDE_PETQL): Promise<ConsumerProject> {
  const root = await mkdtemp(join(tmpdir(), 'petql-package-'));
  const tarball = await packInto(root);
  const folder = join(root, name);
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), `{ "name": "${name}", "private": true, "type": "module" }`);
  await npm(folder, 'install', '--prefer-offline', '--no-audit', '--no-fund', tarball, ...beside);
  await cp(join(import.meta.dirname, name), folder, { recursive: true });
  const running: ChildProcess[] = [];
  // Nothing of the test runner's own environment, whose options could hide what is missing. Each start compiles less.
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, NODE_COMPILE_CACHE: join(root, 'compile-cache') };

  return {
    folder,
    run: (program, ...args) =>
      run(program, args, { cwd: folder, env }).then(
        ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
        ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
      ),
    start(until, more, program = '', ...args) {
      // In its own process group, since a framework may start further processes.
      const child = spawn(program, args, { cwd: folder, env: { ...env, ...more }, detached: true });
      running.push(child);
      let output = '';
      return new Promise((resolve, reject) => {
        for (const stream of [child.stdout, child.stderr]) {
          stream.setEncoding('utf8').on('data', (text: string) => {
            output += text;
            if (until.test(output)) resolve(output);
          });
        }
        child.once('error', reject).once('close', (code) => reject(new Error(`it ended with ${code}: ${output}`)));
      });
    },
    async remove() {
      for (const child of running) {
        if (child.exitCode !== null) continue;
        const ended = once(child, 'close');
        process.kill(-(child.pid ?? 0), 'SIGKILL');
        await ended;
      }
      await rm(root, { recursive: true });
    },
  };
}

async function npm(cwd: string, ...args: string[]): Promise<void> {
  await run('npm', ['--loglevel=error', ...args], { cwd, env: npmEnvironment() });
}

/** With npm's own settings alone: what it hands to its scripts would make these commands part of `npm test`. */
export function npmEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
}
