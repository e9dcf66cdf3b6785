import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildBaseImages } from './base-images.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const IMAGE = 'petql';
const START_MS = 60_000;
const POLL_MS = 200;

/** Debian's own: its client builds by itself, and its Compose is a program. */
const DOCKER = '/usr/bin/docker';
const PACKAGES: Readonly<Record<string, string>> = {
  '/usr/sbin/dockerd': 'docker.io',
  '/usr/bin/docker-compose': 'docker-compose',
  '/usr/bin/mmdebstrap': 'mmdebstrap',
  '/usr/sbin/iptables': 'iptables',
  '/usr/sbin/haproxy': 'haproxy',
};

/** Returns what this machine lacks to run an engine, and how to get it; undefined where it lacks nothing. */
export async function missingForEngine(): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it runs as root, on Debian';
  const isThere = (file: string) =>
    promisify(execFile)('test', ['-x', file]).then(
      () => true,
      () => false,
    );
  const files = Object.keys(PACKAGES);
  const found = await Promise.all(files.map(isThere));
  const packages = files.flatMap((file, index) => (found[index] ? [] : PACKAGES[file]));
  return packages.length === 0 ? undefined : `apt-get install --no-install-recommends ${packages.join(' ')}`;
}

/** A Docker daemon of its own, with the image that the Dockerfile makes. No registry is asked but those of npm and Debian. */
export class Engine implements AsyncDisposable {
  readonly #folder: string;
  readonly #socket: string;
  readonly #resources = new AsyncDisposableStack();

  private constructor(folder: string) {
    this.#folder = folder;
    this.#socket = `unix://${join(folder, 'docker.sock')}`;
  }

  static async start(print: (text: string) => void): Promise<Engine> {
    const folder = await mkdtemp(join(tmpdir(), 'petql-engine-'));
    const engine = new Engine(folder);
    engine.#resources.defer(() => rm(folder, { recursive: true, force: true }));
    try {
      await engine.#startDaemon();
      const clone = await cloneInto(join(folder, 'clone'));
      await buildBaseImages({ root: clone, folder, docker: (...args) => engine.docker(...args), print });
      const startedMs = performance.now();
      await engine.docker('build', '-q', '-t', IMAGE, clone);
      print(`docker build: ${Math.round((performance.now() - startedMs) / 1_000)} s`);
      return engine;
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Runs a command of Docker, and returns what it prints. */
  async docker(...args: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(DOCKER, args, { env: this.#env, maxBuffer: 100_000_000 });
    return stdout.trim();
  }

  /** Runs a command of Docker Compose on test/container/compose.yaml, with this file over it. */
  async compose(override: string, ...args: readonly string[]): Promise<void> {
    const files = ['-f', join(this.#folder, 'clone/test/container/compose.yaml'), '-f', override];
    const env = { ...this.#env, COMPOSE_PROJECT_NAME: 'petql', PET_API_KEY: 'demo-business' };
    await promisify(execFile)('docker-compose', [...files, ...args], { env: { ...env, BACKEND_IMAGE: IMAGE } });
  }

  /** Returns one value of `docker inspect`. */
  inspect(container: string, format: string): Promise<string> {
    return this.docker('inspect', container, '--format', `{{${format}}}`);
  }

  get #env(): NodeJS.ProcessEnv {
    return { PATH: process.env['PATH'], HOME: this.#folder, DOCKER_HOST: this.#socket, DOCKER_BUILDKIT: '1' };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }

  async #startDaemon(): Promise<void> {
    const at = (name: string) => join(this.#folder, name);
    const folders = ['--data-root', at('data'), '--exec-root', at('exec'), '--pidfile', at('pid')];
    // The limit of this machine: not every one lets its root raise it.
    const [, files = ''] = /^Max open files +\d+ +(\d+)/m.exec(await readFile('/proc/self/limits', 'utf8')) ?? [];
    const limits = ['--default-ulimit', `nofile=${files}:${files}`];
    const daemon = spawn('/usr/sbin/dockerd', ['--host', this.#socket, ...folders, ...limits], { stdio: 'ignore' });
    this.#resources.defer(async () => {
      const containers = (await this.docker('ps', '-aq').catch(() => '')).split('\n').filter(Boolean);
      if (containers.length > 0) await this.docker('rm', '-fv', ...containers).catch(() => {});
      if (daemon.exitCode !== null) return;
      const ended = once(daemon, 'exit');
      daemon.kill('SIGTERM');
      await ended;
    });
    await until(
      () =>
        this.docker('version').then(
          () => true,
          () => daemon.exitCode !== null,
        ),
      START_MS,
    );
    if (daemon.exitCode !== null) throw new Error(`dockerd ended with ${daemon.exitCode}`);
  }
}

/** Clones the last commit. Its base images have other digests here than a registry's. */
async function cloneInto(folder: string): Promise<string> {
  await promisify(execFile)('git', ['clone', '-q', ROOT, folder]);
  for (const file of ['Dockerfile', 'test/container/compose.yaml']) {
    const path = join(folder, file);
    await writeFile(path, (await readFile(path, 'utf8')).replaceAll(/@sha256:[0-9a-f]{64}/g, ''));
  }
  return folder;
}

/** The exit codes of a process that these signals end. */
export const ENDED = { SIGKILL: 128 + constants.signals.SIGKILL, SIGTERM: 128 + constants.signals.SIGTERM };

/** Resolves with whether the condition came true in time. */
export async function until(isTrue: () => Promise<boolean>, maxMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + maxMs;
  for (;;) {
    if (await isTrue()) return true;
    if (performance.now() > deadlineMs) return false;
    await setTimeout(POLL_MS);
  }
}
