import { randomUUID } from 'node:crypto';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SCRIPT = 'src/program/entrypoint.sh';
const ENTRYPOINT = ['sh', SCRIPT];
/** Makes a program the first process of its own, as in a container. */
const UNSHARE = ['--user', '--map-root-user', '--pid', '--fork', '--mount-proc'];
const env = { PATH: `${dirname(process.execPath)}:${process.env['PATH']}` };

const isContained = (() => {
  try {
    execFileSync('unshare', [...UNSHARE, 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
const [, checkCommand = ''] = /^HEALTHCHECK .*\\\n *CMD (.*)$/m.exec(dockerfile) ?? [];
const healthCheck = parse(checkCommand) as string[];

test('is what the image runs, with a health check that has no variable of the container', () => {
  expect(dockerfile).toContain(`ENTRYPOINT ${JSON.stringify(ENTRYPOINT).replace(',', ', ')}`);
  expect(healthCheck.slice(0, 2)).toEqual(['env', '-i']);
  expect(dockerfile).toMatch(/^USER 1000$/m);
  expect(dockerfile).toMatch(/^ENV HOST=::$/m);
});

test('hands standard input, arguments and the exit code through', async () => {
  const run = (...args: string[]) => promisify(execFile)('sh', [SCRIPT, ...args], { cwd: ROOT, env });
  const hashing = run('hash-key', '--pet-api-url', 'http://pets.test/v1');
  hashing.child.stdin?.end('demo-free\n');
  expect((await hashing).stdout).toMatch(/^[\w-]{22,}\n$/);
  await expect(run('--port', 'a port')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('got "a port"'),
  });
});

describe.runIf(isContained)('as the first process', { concurrent: true }, () => {
  function start(...args: string[]) {
    const command = [...UNSHARE, ...ENTRYPOINT, '--port', '0', '--sandbox', ...args];
    const child = spawn('unshare', command, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] });
    return { child, ended: once(child, 'close') };
  }

  /** The processes below it. The first one there is the first process of the container. */
  async function childOf(id: number | undefined): Promise<number> {
    for (;;) {
      const [first] = readFileSync(`/proc/${id}/task/${id}/children`, 'utf8').split(' ');
      if (first) return Number(first);
      await pause(1);
    }
  }

  // Without a handler it would be lost: Node.js takes 100 ms to run the first line of petql.
  test.each([0, 5, 20, 60, 150, 400])('it ends by a SIGTERM %i ms after it has started Node.js', async (afterMs) => {
    const { child, ended } = start();
    const first = await childOf(child.pid);
    await childOf(first);
    await pause(afterMs);
    process.kill(first, 'SIGTERM');
    const [code] = await ended;
    expect([0, 143]).toContain(code);
  });

  test('it stops cleanly once petql runs, and is killed with it', async () => {
    const { child, ended } = start();
    await once(child.stdout, 'data');
    process.kill(await childOf(child.pid), 'SIGTERM');
    expect(await ended).toEqual([0, null]);

    const other = start();
    await once(other.child.stdout, 'data');
    process.kill(await childOf(await childOf(other.child.pid)), 'SIGKILL');
    expect(await other.ended).toEqual([137, null]);
  });

  test.each([
    ['a free port', '--port 0'],
    ['an IPv6 address', '--port 0 --host ::1'],
    ['another address', '--port 0 --host 127.0.0.3'],
    ['all addresses, with an admin port', '--port 0 --host :: --admin-port 0 --admin-host ::'],
  ])('it is healthy at %s, and not when petql hangs', async (_what, args) => {
    const check = `${healthCheck.map((word) => word.replace(/^PATH=.*/, `PATH=${env.PATH}`)).join(' ')}; echo $?`;
    const script = `
      ${ENTRYPOINT.join(' ')} --sandbox ${args} >"$0" 2>&1 &
      until grep -q ^curl "$0"; do sleep 0.1; done
      ${check}
      kill -STOP $(cat /proc/$!/task/$!/children)
      ${check}
      kill -KILL $(cat /proc/$!/task/$!/children)
      ${check}`;
    const file = join(tmpdir(), `petql-entrypoint-${randomUUID()}`);
    const { stdout } = await promisify(execFile)('unshare', [...UNSHARE, 'sh', '-c', script, file], { cwd: ROOT, env });
    await rm(file);
    expect(stdout).toBe('0\n1\n1\n');
  });
});
