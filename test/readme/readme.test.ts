import { execFile } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import packageLock from '../../package-lock.json' with { type: 'json' };
import { createGateway } from '../../src/index.ts';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import { PLAN_KEYS } from '../../src/program/sandbox/demo-keys.ts';
import { anchorsOf } from '../support/anchors.ts';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);
const readText = (path: string) => readFile(join(ROOT, path), 'utf8');

const documents = globSync(['*.md', '.github/*.md', '{schema,src,test}/**/*.md'], { cwd: ROOT });
const readme = await readText('README.md');
const reference = await readText('schema/README.md');
const library = (await readText('src/EMBEDDING.md')) + (await readText('src/TESTING.md'));
const sandboxPage = await readText('src/program/sandbox/README.md');
const pages = [
  readme,
  reference,
  library,
  await readText('src/program/README.md'),
  await readText('src/TROUBLESHOOTING.md'),
];
/** Those of recipes are in test/clients. */
const blocks = [
  ...(readme + reference).replaceAll(/^<!-- schema\/recipes\/.+?^```$/gms, '').matchAll(/^```(\w+)\n(.*?)^```$/gms),
].map(([, kind = '', text = '']) => ({
  kind,
  text,
}));
const ofKind = (kind: string) => blocks.filter((block) => block.kind === kind).map(({ text }) => text.trim());
/** What a package exports, and the file that it is here. */
const SOURCES: Readonly<Record<string, string>> = {
  petql: '../../src/index.ts',
  'petql/sandbox': '../../src/program/sandbox/sandbox.ts',
};
/** Inline code. */
const words = [...pages.join('\n').matchAll(/`([^`\n]+)`/g)].map(([, text = '']) => text);

const sandbox = createSandbox();
let sandboxUrl: string;
let gateway: TestGateway;
/** Those of `petql --help`. */
let settings: Awaited<ReturnType<typeof readHelp>>;

beforeAll(async () => {
  sandboxUrl = await sandbox.listen();
  const options = { petApiUrl: sandboxUrl, admin: true };
  [gateway, settings] = await Promise.all([startGateway({ gateway: options }), readHelp()]);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await sandbox.close();
});

test('is short: 200 lines, and prose of 100 characters a line', () => {
  const lines = readme.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(200);
  const prose = readme
    .replaceAll(/^```.*?^```$/gms, '')
    .split('\n')
    .filter((line) => !/^\||^</.test(line));
  // A link shows its text alone.
  expect(prose.filter((line) => line.replaceAll(/\]\([^)]+\)/g, ']').length > 100)).toEqual([]);
});

test.each(documents)('%s has lines of 160 characters, and cells of tables of 25 words, at most', async (file) => {
  const lines = (await readText(file)).replaceAll(/^ *```.*?^ *```$/gms, '').split('\n');
  const isRow = (line: string) => /^\s*\|/.test(line);
  expect(lines.filter((line) => !isRow(line) && line.length > 160)).toEqual([]);
  const cells = lines.filter(isRow).flatMap((row) => row.split(/(?<!\\)\|/));
  expect(cells.filter((cell) => cell.trim().split(/\s+/).length > 25)).toEqual([]);
});

describe('the blocks of code', () => {
  test('are all of a kind that a test or continuous integration runs', async () => {
    // ts in test/package/consumer.test.ts, too; the first sh in package/npx.test.ts and clean-start.test.ts
    expect(new Set(blocks.map(({ kind }) => kind))).toEqual(new Set(['sh', 'json', 'ts', 'graphql']));
    const [start] = ofKind('sh');
    const clone = `git clone ${packageJson.repository.url.replace(/^git\+/, '')} && cd petql`;
    expect(words).toContain('npx petql');
    expect(start).toContain(`${clone}\nnpm ci`);
    expect(words).toContain('npm ci && npm test');
    expect(await readText('.ci/run')).toMatch(/^npm ci\n.*^npm test /ms);
  });

  test('curl prints the result that is shown', async () => {
    const [, curl = ''] = ofKind('sh');
    const { stdout } = await run('sh', ['-c', curl.replace('http://127.0.0.1:4000/graphql', gateway.endpoint)]);
    const shown = JSON.parse(ofKind('json')[0] ?? '');
    shown.extensions.petql.oldestAgeMs = expect.any(Number);
    expect(JSON.parse(stdout)).toEqual(shown);
  });

  test('a create that is sent again returns the same pet, and costs no call', async () => {
    const [, , curl = ''] = ofKind('sh');
    const command = curl.replace('http://127.0.0.1:4000/graphql', gateway.endpoint);
    const [first, second] = [await run('sh', ['-c', command]), await run('sh', ['-c', command])].map(({ stdout }) =>
      JSON.parse(stdout),
    );
    expect(first).toMatchObject({
      data: { createPet: { userErrors: [] } },
      extensions: { petql: { upstreamCalls: 1 } },
    });
    expect(second).toMatchObject({ data: first.data, extensions: { petql: { upstreamCalls: 0 } } });
  });

  test.each(ofKind('graphql'))('the operation runs without an error: %s', async (query) => {
    const variables = query.includes('$') ? JSON.parse(ofKind('json')[1] ?? '') : {};
    const { data, errors, headers } = await gateway.query(query, { variables });
    expect(errors).toBeUndefined();
    expect(Object.values(data ?? {}).every((value) => value !== null)).toBe(true);
    for (const name of ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit']) expect(headers.has(name)).toBe(true);
  });

  test('the backend gets names from petql', async () => {
    vi.stubEnv('PET_API_KEY', undefined);
    vi.stubEnv('PET_API_URL', undefined);
    expect(words).toContain('npx petql sandbox --port 4010');
    const print = vi.fn<(names: string[]) => void>();
    vi.stubGlobal('petql', { createGateway, print });
    const code = stripTypeScriptTypes(ofKind('ts')[0] ?? '')
      .replace("import { createGateway } from 'petql';", 'const { createGateway } = petql;')
      .replace('http://127.0.0.1:4010/v1', sandboxUrl)
      .replace('console.log', 'petql.print');
    const backend = await import(`data:text/javascript,${encodeURIComponent(`${code}\nexport { gateway };`)}`);
    expect(print.mock.lastCall).toEqual([expect.arrayContaining(['Ada', 'Balu'])]);
    await backend.gateway.close();
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
  });

  test('the example of llms.txt prints pets', async () => {
    const print = vi.fn<(data: unknown) => void>();
    vi.stubGlobal('print', print);
    const [, block = ''] = /^```ts\n(.*?)^```$/ms.exec(await readText('llms.txt')) ?? [];
    const code = withSources(block).replace('console.log', 'print');
    await import(`data:text/javascript,${encodeURIComponent(code)}`);
    expect(print.mock.lastCall).toEqual([
      {
        pets: [
          { id: '1', name: 'Ada' },
          { id: '2', name: 'Balu' },
        ],
      },
    ]);
    vi.unstubAllGlobals();
  });

  test('the tests of a backend pass', async () => {
    const hook = () => vi.fn<(body: () => void) => void>();
    const declared = vi.fn<(name: string, body: () => Promise<void>) => void>();
    const stub = { beforeEach: hook(), afterEach: hook(), test: declared, expect, vi };
    vi.stubGlobal('vitest', stub);
    const texts = [...library.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, text = '']) => text);
    const block = texts.find((text) => text.includes("from 'vitest'")) ?? '';
    const code = withSources(block).replace(/import (\{.+\}) from 'vitest';/, 'const $1 = vitest;');
    await import(`data:text/javascript,${encodeURIComponent(code)}`);

    expect(declared.mock.calls.length).toBeGreaterThan(2);
    for (const [, body] of declared.mock.calls) {
      stub.beforeEach.mock.lastCall?.[0]();
      await body();
      stub.afterEach.mock.lastCall?.[0]();
    }
    vi.unstubAllGlobals();
  });
});

describe('the tables', () => {
  test('name every setting with its variable and its default', () => {
    expect(settings.length).toBeGreaterThan(20);
    const documented = pages
      .join('\n')
      .split('\n')
      .flatMap((row) => {
        if (!row.startsWith('| `--')) return [];
        const [flags = [], variables = [], values = []] = row
          .split('|')
          .slice(1)
          .map((cell) => cell.split(',').map((part) => part.trim().replaceAll('`', '')));
        return flags.map((flag, index) => ({ flag, variable: variables[index], value: values[index] ?? '' }));
      });
    for (const { value, ...setting } of settings) {
      expect(documented).toContainEqual({
        ...setting,
        value: expect.stringMatching(/^\d/.test(value) ? new RegExp(`^${value}$`) : /^/),
      });
    }
  });

  test('name every error code', async () => {
    const codes = [...(await readText('src/common/errors.ts')).matchAll(/\| '([A-Z_]+)'/g)].map(([, code]) => code);
    expect(codes.length).toBeGreaterThan(10);
    for (const code of codes) expect(reference).toMatch(new RegExp(`^\\| .*\`${code}\`.* \\| .+ \\| .+ \\|$`, 'm'));
  });

  test('name the demo key of every plan with its limits', () => {
    const figures = (calls: number) => calls.toLocaleString('en');
    for (const [key, { perMinute, perDay }] of Object.entries(PLAN_KEYS)) {
      expect(sandboxPage).toContain(`| \`${key}\` | ${figures(perMinute)} | ${figures(perDay)} |`);
    }
  });
});

describe('what the text names exists:', () => {
  test('flags and scripts', async () => {
    const flags = settings.map(({ flag }) => flag);
    const { stdout: simulation } = await run(process.execPath, [
      join(ROOT, 'src/program/main.ts'),
      'simulate',
      '--help',
    ]);
    const others = ['--read-only', '--cap-drop', '--help', ...(simulation.match(/--[a-z-]+/g) ?? [])];
    const named = words.flatMap((word) =>
      /^(?:npm run|npm install|docker build|NODE_OPTIONS)/.test(word) ? [] : (word.match(/--[a-z][a-z-]+/g) ?? []),
    );
    for (const flag of named) expect([...flags, ...others]).toContain(flag);
    const scripts = words.flatMap((word) => /^npm run ([\w-]+)/.exec(word)?.[1] ?? []);
    expect(scripts.length).toBeGreaterThan(2);
    for (const script of scripts) expect(Object.keys(packageJson.scripts)).toContain(script);
  });

  test('metrics', async () => {
    await gateway.query('{ pets(limit: 1) { id } }');
    const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text();
    const named = words.flatMap((word) => /^petql_\w+/.exec(word)?.[0] ?? []);
    expect(named.length).toBeGreaterThan(1);
    for (const name of named) expect(metrics).toContain(`# TYPE ${name} `);
  });

  test.each(['llms.txt', ...documents])('links of %s', async (file) => {
    const text = await readText(file);
    const links = [...text.matchAll(/\]\((?!https?:)([^)]+)\)/g)].map(([, link = '']) => link);
    const broken: string[] = [];
    for (const link of links) {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? file : join(dirname(file), path);
      const isThere =
        existsSync(join(ROOT, target)) && (anchor === undefined || anchorsOf(await readText(target)).includes(anchor));
      if (!isThere) broken.push(link);
    }
    expect(broken).toEqual([]);
  });

  test('all documents, in llms.txt', async () => {
    const index = await readText('llms.txt');
    for (const document of documents) expect(index).toContain(`](${document})`);
  });

  test('as many packages as are said to be installed', () => {
    const installed = Object.entries<{ version?: string; dev?: boolean }>(packageLock.packages).filter(
      ([path, { dev }]) => path !== '' && !dev,
    );
    // petql itself, too
    expect(library).toContain(`${installed.length + 1} packages`);
  });
});

/** JavaScript that imports this checkout in place of the package. */
function withSources(typescript: string): string {
  return stripTypeScriptTypes(typescript).replaceAll(
    / from '(petql.*)'/g,
    (_all, name: string) => ` from '${import.meta.resolve(SOURCES[name] ?? name)}'`,
  );
}

async function readHelp() {
  const { stdout } = await run(process.execPath, [join(ROOT, 'src/program/main.ts'), '--help']);
  expect(stdout).toContain('petql sandbox [options]');
  const [, ofGateway = ''] = stdout.split(/^\S.*:\n/m);
  const rows = ofGateway.matchAll(/^ +(--\S+)(?: [A-Z]+)? +([A-Z_]+) +.*?(?:\((?:default )?(\S+)\))?$/gm);
  return [...rows].map(([, flag = '', variable = '', value = '']) => ({ flag, variable, value }));
}
