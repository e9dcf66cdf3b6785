import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
const [shown = '', curl = ''] = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text = '']) => text.trim());
/** The clone is this one, as it stands. */
const start = shown.split('\n').at(-1) ?? '';
const [, answer = ''] = /^```json\n(.*?)^```$/ms.exec(readme) ?? [];

/** What a clean clone holds, and nothing that was installed or built. */
const CLONED = ['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json', 'src', 'schema'];
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petql-readme-'));
  for (const name of CLONED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
});
afterAll(() => rm(folder, { recursive: true }));

test('the first command starts petql in a clean folder with the system Node, and the second gets the printed answer', async () => {
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

test('without install scripts it starts all the same, or says in one line what is missing', async () => {
  const shell = run('npm ci --ignore-scripts && npm start -- --version 2>&1');
  const output = (await shell.stdout.setEncoding('utf8').toArray()).join('');
  expect(output.trim().split('\n').at(-1)).toMatch(
    /^(?:\d+\.\d+\.\d+|petql needs Node\.js 24\.12 or later, and this is .*: npm ci --include=dev --ignore-scripts=false\. On Alpine, .*)$/,
  );
}, 120_000);

function run(command: string) {
  return spawn('sh', ['-c', command], {
    cwd: folder,
    env: { ...process.env, PATH: systemPath(), NODE_ENV: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
}

/** Without the folders that npm puts in front, so that the machine's own Node and npm are found. */
function systemPath(): string {
  return (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((entry) => !entry.includes('node_modules'))
    .join(delimiter);
}
