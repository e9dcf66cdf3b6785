import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The command line program's file. */
export const MAIN = fileURLToPath(new URL('../../src/program/main.ts', import.meta.url));
/** Keeps the code without its types from start to start, which halves the time that each takes. */
const NODE_COMPILE_CACHE = fileURLToPath(new URL('../../node_modules/.cache/node-compile', import.meta.url));
/** As the image and `npm start` have it. */
const NODE_OPTIONS = ['--max-semi-space-size=16'];

export interface PetqlProcess {
  readonly pid: number;
  /** What it has printed so far. */
  readonly output: { stdout: string; stderr: string };
  /** The GraphQL endpoint, or the sandbox's base address, once it says that it listens. */
  readonly address: string;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Resolves with the exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Options of Node.js, which win over those of the image. Default: none. */
  readonly nodeOptions?: readonly string[];
  /** What runs it in its own place, such as `prlimit` with its arguments. Default: nothing. */
  readonly under?: readonly string[];
  /** What it reads on standard input. Default: nothing. */
  readonly input?: string;
  /** Gets the process that `runPetql` has started. */
  readonly onStart?: (started: Pick<PetqlProcess, 'output'> & { kill: (signal: NodeJS.Signals) => void }) => void;
}

/** Runs the command line program as a user does; resolves once it listens. */
export async function startPetql(args: readonly string[], options: RunOptions = {}): Promise<PetqlProcess> {
  const { child, output, exited } = run(args, options);
  const address = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => {
      // Its last line, so that everything before it is there too.
      const gateway = /^curl -s (\S+) /m.exec(output.stdout)?.[1];
      const sandbox = /demo-banned|^Any key/m.test(output.stdout) && /^Sandbox +(\S+)/m.exec(output.stdout)?.[1];
      const found = gateway ?? (args[0] === 'sandbox' ? sandbox : undefined);
      if (found) resolve(found);
    });
    void exited.then((code) => reject(new Error(`petql ended with ${code}: ${output.stderr}`)));
  });
  return { pid: child.pid ?? 0, output, address, exited, kill: (signal) => child.kill(signal) };
}

/** Runs it to its end. */
export async function runPetql(args: readonly string[], options: RunOptions = {}) {
  const { child, output, exited } = run(args, options);
  options.onStart?.({ output, kill: (signal) => void child.kill(signal) });
  return { code: await exited, ...output };
}

function run(args: readonly string[], { env, nodeOptions = [], under = [], input = '' }: RunOptions) {
  const [command = '', ...words] = [...under, process.execPath, ...NODE_OPTIONS, ...nodeOptions, MAIN, ...args];
  const child = spawn(command, words, {
    // Nothing of the test runner's own environment, which may set PORT or NODE_ENV.
    env: { PATH: process.env['PATH'] ?? '', NODE_COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(input);
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return { child, output, exited };
}
