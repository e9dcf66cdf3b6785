import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** A process that serves GraphQL. */
export interface Server extends AsyncDisposable {
  readonly port: number;
  /** CPU time of all threads of this process alone, since its start. */
  readonly cpuMicros: () => Promise<number>;
}

type Start = (petApiUrl: string) => Promise<Server>;

/** How long what was read may be served again. */
export interface Source {
  readonly MAX_AGE_MS: string;
}

const CALLS_A_MINUTE = '100000000';

/** What people run instead of petql. Each gets the same requests. */
export const RIVALS: Readonly<Record<string, (petApiUrl: string, source: Source) => Promise<Server>>> = {
  bare: (url) => startServer('bare.mjs', { PET_API_URL: url }),
  yoga: (url) => startServer('yoga.mjs', { PET_API_URL: url }),
  'yoga-throttled': (url) => startServer('yoga.mjs', { PET_API_URL: url, CALLS_A_MINUTE }),
  'yoga-throttled-cached': (url, { MAX_AGE_MS }) =>
    startServer('yoga.mjs', { PET_API_URL: url, CALLS_A_MINUTE, MAX_AGE_MS }),
};

/** Returns what starts petql as npm has it: plain JavaScript, as the rivals are. */
export function petqlOf(root: string, env: NodeJS.ProcessEnv): Start {
  build(root);
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { bin: { petql: string } };
  const shared = { PORT: '0', PLAN: '100000000/900000000', LOG_LEVEL: 'error', ...env };
  return (url) => startServer(join(root, bin.petql), { ...shared, PET_API_URL: url });
}

const SERVERS = import.meta.dirname;

/** Resolves once the server listens. */
async function startServer(program: string, env: NodeJS.ProcessEnv): Promise<Server> {
  const child = fork(resolve(SERVERS, program), {
    execArgv: ['--max-semi-space-size=16', '--import', join(SERVERS, 'control.mjs')],
    env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const answer = async () => Number((await once(child, 'message'))[0]);
  return {
    port: await answer(),
    async cpuMicros() {
      child.send('usage');
      return answer();
    },
    async [Symbol.asyncDispose]() {
      child.disconnect();
      await once(child, 'exit');
    },
  };
}

const built = new Set<string>();

function build(root: string): void {
  if (!built.has(root)) execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
  built.add(root);
}
