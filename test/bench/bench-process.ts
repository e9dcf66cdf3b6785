import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';

/** A process that the bench started, with a channel that it answers on. */
export interface BenchProcess {
  readonly port: number;
  ask<T>(message: unknown): Promise<T>;
  stop(): Promise<void>;
}

export interface BenchProcessOptions {
  readonly program: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The one core that it may use; undefined where the machine cannot pin. */
  readonly core: number | undefined;
}

const CONTROL = fileURLToPath(new URL('peers/control.js', import.meta.url));

/** Starts a process that listens on `PORT`; does not wait until it does. */
export async function startProcess(options: BenchProcessOptions): Promise<BenchProcess> {
  const { program, args = [], env, core } = options;
  const port = await freePort();
  const node = [process.execPath, ...extraFlags(), '--import', CONTROL, program, ...args];
  const [command = '', ...rest] = core === undefined ? node : ['taskset', '-c', String(core), ...node];
  const child = spawn(command, rest, {
    env: { PATH: process.env['PATH'] ?? '', NODE_ENV: 'production', PORT: String(port), LOG_LEVEL: 'error', ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return {
    port,
    async ask<T>(message: unknown) {
      const answer = once(child, 'message');
      child.send(message as object);
      return (await answer)[0] as T;
    },
    async stop() {
      if (child.exitCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** Waits until something listens there. */
export async function untilListening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 4_000; attempt += 1) {
    const socket = connect({ port, host: '127.0.0.1' });
    try {
      await once(socket, 'connect');
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5));
    } finally {
      socket.destroy();
    }
  }
  throw new Error(`nothing listens on port ${port}`);
}

/** Flags for whoever looks closer, such as --cpu-prof. */
function extraFlags(): readonly string[] {
  return (process.env['BENCH_NODE_FLAGS'] ?? '').split(' ').filter(Boolean);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
