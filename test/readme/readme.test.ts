import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeConfig } from '../../src/config.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
const blocks = [...readme.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, kind = '', text = '']) => ({ kind, text }));
const ofKind = (kind: string) => blocks.filter((block) => block.kind === kind).map(({ text }) => text.trim());

/** What a clean clone holds, and nothing that was installed or built. */
const CLONED = ['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json', 'vitest.config.ts', 'src', 'schema'];

describe('the commands', () => {
  const [start = '', curl = '', check = ''] = ofKind('sh');
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'petql-readme-'));
    for (const name of CLONED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
  });
  afterAll(() => rm(folder, { recursive: true }));

  test('start petql in a clean folder with the system Node, and the pasted line gets the printed answer', async () => {
    const shell = run(`${start} -- --port 0`);
    let output = '';
    const endpoint = await new Promise<string>((resolve, reject) => {
      shell.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        const found = /^curl -s (\S+)/m.exec(output)?.[1];
        if (found) resolve(found);
      });
      shell.once('close', (code) => reject(new Error(`it ended with ${code}: ${output}`)));
    });
    const [answer = ''] = ofKind('json');
    const pasted = run(curl.replace('http://127.0.0.1:4000/graphql', endpoint));
    const received = (await pasted.stdout.setEncoding('utf8').toArray()).join('');
    const printed = JSON.parse(answer);
    // Its age is another each time.
    printed.extensions.petql.oldestAgeMs = expect.any(Number);
    expect(JSON.parse(received)).toEqual(printed);
    const ended = once(shell, 'close');
    if (shell.pid) process.kill(-shell.pid, 'SIGTERM');
    await ended;
    expect(output).not.toMatch(/warn/i);
  }, 120_000);

  test('test it with the command that continuous integration calls', async () => {
    expect(check).toBe('npm ci && npm test');
    expect(await readFile(join(ROOT, '.ci/run'), 'utf8')).toContain(check);
  });

  function run(command: string) {
    return spawn('sh', ['-c', command], {
      cwd: folder,
      env: { ...process.env, PATH: systemPath(), NODE_ENV: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    });
  }
});

describe('the queries', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startGateway();
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
  });

  test.each(ofKind('graphql'))('run without an error: %s', async (query) => {
    const { data, errors } = await gateway.query(query);
    expect(errors).toBeUndefined();
    expect(Object.values(data ?? {}).every((value) => value !== null)).toBe(true);
  });
});

describe('the tables', () => {
  test('name every setting', () => {
    for (const line of describeConfig('gateway').split('\n')) {
      const [flag = '', variable] = line.trim().split(/ {2,}/);
      expect(readme).toContain(`\`${flag.split(' ')[0]}\``);
      expect(readme).toContain(`\`${variable}\``);
    }
  });
  test('name every error code', async () => {
    const source = await readFile(join(ROOT, 'src/errors.ts'), 'utf8');
    const codes = [...source.matchAll(/\| '([A-Z_]+)'/g)].map(([, code]) => code);
    expect(codes.length).toBeGreaterThan(10);
    for (const code of codes) expect(readme).toContain(`\`${code}\``);
  });
});

/** Without the folders that npm puts in front, so that the machine's own Node and npm are found. */
function systemPath(): string {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .join(delimiter);
}
