import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './serve.ts';
import { until } from './until.ts';

/** A Redis of a test's own, which it may kill, stop and empty. */
export interface RedisServer {
  readonly url: string;
  /** Kills it; what it held is gone, unless it is durable. */
  readonly kill: () => Promise<void>;
  /** Starts it again on the same port. */
  readonly start: () => Promise<void>;
  /** SIGSTOP: connections stand, nothing is answered. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  /** One command through redis-cli's protocol, for what the tests do behind petql's back. */
  readonly command: (...words: string[]) => Promise<string>;
  /** Notes each command from now on, also those inside scripts, as Redis's MONITOR shows it. */
  readonly monitor: () => Promise<RedisMonitor>;
  readonly close: () => Promise<void>;
}

export interface RedisMonitor extends Disposable {
  /** The lines since the last look: settles once everything that was carried out before is noted. */
  readonly lines: () => Promise<string[]>;
}

/** Whether tests with Redis run: always in CI, where a missing Redis must fail them. */
export const redisIsHere = Boolean(process.env['CI']) || hasRedis();

if (!redisIsHere) process.emitWarning('no redis-server is installed, so the tests with Redis are skipped');

/** Whether a line of the log says that Redis was too slow, or what follows: a busy machine may keep a command for half a second. */
export function isOfSlowRedis({ reason }: Readonly<Record<string, unknown>>): boolean {
  return /^Command timed out|^Redis is unavailable/.test(String(reason));
}

export interface RedisServerOptions {
  /** Whether it writes down what it holds, as the README asks of it, so that it still has it after a kill. Default false. */
  readonly durable?: boolean;
  /** Further settings, by their names in redis.conf. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of sentinel.conf: it is a Sentinel then, which holds no data. */
  readonly sentinel?: string;
}

export async function startRedis({
  durable = false,
  settings,
  sentinel,
}: RedisServerOptions = {}): Promise<RedisServer> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'petql-redis-'));
  let child: ChildProcess | undefined;

  const server: RedisServer = {
    url: `redis://127.0.0.1:${port}`,
    async kill() {
      if (!child) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      child = undefined;
    },
    async start() {
      child = spawn('redis-server', sentinel === undefined ? redisArgs() : sentinelArgs(sentinel), { stdio: 'ignore' });
      await answers(port);
    },
    freeze: () => child?.kill('SIGSTOP'),
    thaw: () => child?.kill('SIGCONT'),
    command: (...words) => speak(port, words),
    monitor: () => monitor(port),
    async close() {
      child?.kill('SIGCONT');
      await server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await server.start();
  return server;

  function redisArgs(): string[] {
    return Object.entries({
      port: String(port),
      bind: '127.0.0.1',
      dir: folder,
      save: '',
      appendonly: durable ? 'yes' : 'no',
      appendfsync: 'everysec',
      'maxmemory-policy': 'noeviction',
      ...settings,
    }).flatMap(([name, value]) => [`--${name}`, value]);
  }

  /** A Sentinel is the same program, and writes into its file what it learns. */
  function sentinelArgs(lines: string): string[] {
    const file = join(folder, 'sentinel.conf');
    writeFileSync(file, `port ${port}\nbind 127.0.0.1\ndir ${folder}\n${lines}`);
    return [file, '--sentinel'];
  }
}

function hasRedis(): boolean {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

async function answers(port: number): Promise<void> {
  for (;;) {
    const pong = await speak(port, ['PING']).catch(() => '');
    if (pong.startsWith('+PONG')) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
}

function speak(port: number, words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const encoded = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('');
    socket.once('connect', () => socket.write(`*${words.length}\r\n${encoded}`));
    socket.once('data', (data) => {
      socket.destroy();
      resolve(data.toString());
    });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('the connection ended without an answer')));
  });
}

async function monitor(port: number): Promise<RedisMonitor> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (data) => (text += data.toString()));
  socket.write('MONITOR\r\n');
  await until(() => text.includes('+OK'));
  return {
    async lines() {
      const mark = randomUUID();
      await speak(port, ['ECHO', mark]);
      await until(() => text.includes(mark));
      const lines = text.split('\r\n').filter((line) => !line.includes(mark));
      text = '';
      return lines;
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}
