import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/serve.ts';

export type BoxKind = 'haproxy' | 'nginx' | 'varnish';

/** A real nginx, HAProxy or Varnish, in a folder of its own. */
export interface Box extends AsyncDisposable {
  readonly origin: string;
  /** Goes on with another configuration, as operators do it: connections in use end by themselves. */
  readonly reload: (config?: string) => Promise<void>;
}

/** How one kind is started, and what its configuration is made of. */
interface Kind {
  readonly program: string;
  readonly versionFlag: string;
  readonly args: (folder: string, file: string, port: number) => readonly string[];
  /** Returns the whole configuration around the part that a check writes. */
  readonly wrap: (part: string, port: number, folder: string) => string;
  readonly reloadSignal: NodeJS.Signals | undefined;
}

/** nginx's workers may not read the folder of root. */
const USER = process.getuid?.() === 0 ? 'user root;' : '';

const KINDS: Readonly<Record<BoxKind, Kind>> = {
  nginx: {
    program: 'nginx',
    versionFlag: '-v',
    args: (folder, file) => ['-p', folder, '-c', file, '-e', 'stderr', '-g', 'daemon off;'],
    wrap: (part, port, folder) => `${USER} worker_processes 2; pid ${folder}/pid; events { }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  ${part.replaceAll('PORT', String(port))}
}
`,
    reloadSignal: 'SIGHUP',
  },
  haproxy: {
    program: 'haproxy',
    versionFlag: '-v',
    args: (_folder, file) => ['-W', '-db', '-q', '-f', file],
    wrap: (part, port) => `defaults
  mode http
  timeout connect 2s
  timeout client 30s
  timeout server 30s
${part.replaceAll('PORT', String(port))}
`,
    reloadSignal: 'SIGUSR2',
  },
  varnish: {
    program: 'varnishd',
    versionFlag: '-V',
    args: (folder, file, port) => [
      '-F',
      '-j',
      'none',
      '-n',
      folder,
      '-a',
      `127.0.0.1:${port}`,
      '-f',
      file,
      '-s',
      'malloc,32m',
    ],
    wrap: (part) => `vcl 4.1;\n${part}\n`,
    reloadSignal: undefined,
  },
};

/** How long one may take to start: Varnish compiles its configuration. */
const START_MS = 20_000;
/** How long a configuration takes to be in use after a signal. */
const RELOAD_MS = 300;

export function isInstalled(kind: BoxKind): boolean {
  const { program, versionFlag } = KINDS[kind];
  return spawnSync(program, [versionFlag]).status === 0;
}

/** @param config what the check is about; `PORT` in it is the port to listen on. */
export async function startBox(kind: BoxKind, config: string): Promise<Box> {
  const { program, args, wrap, reloadSignal } = KINDS[kind];
  const folder = await mkdtemp(join(tmpdir(), `petql-${kind}-`));
  const port = await freePort();
  const file = join(folder, 'config');
  await writeFile(file, wrap(config, port, folder));

  const child = spawn(program, args(folder, file, port), { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  await listens(port, child, () => `${kind} does not start: ${output}`);
  return {
    origin: `http://127.0.0.1:${port}`,
    async reload(part = config) {
      if (!reloadSignal) throw new Error(`${kind} has no reload here`);
      await writeFile(file, wrap(part, port, folder));
      child.kill(reloadSignal);
      await new Promise((resolve) => void setTimeout(resolve, RELOAD_MS));
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) {
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        await ended;
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function listens(port: number, child: ChildProcess, problem: () => string): Promise<void> {
  const deadlineMs = performance.now() + START_MS;
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    if (child.exitCode !== null || performance.now() > deadlineMs) throw new Error(problem());
    await new Promise((resolve) => void setTimeout(resolve, 50));
  }
}
