import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const DOCUMENTS = ['README.md', ...globSync(['{src,test,schema}/**/*.md', '.github/*.md'], { cwd: ROOT })];
/** Options of other programs, and an example. The changelog names what is gone. */
const FOREIGN = new Set([
  'custom-http-errors',
  'deletePet',
  'persistConfig',
  'persistedDocuments',
  'proxy_intercept_errors',
  'refetchInterval',
  'refreshInterval',
]);
/** What a name in a document may come from. */
const FILES = globSync(
  ['{src,test,schema}/**/*.{js,ts,graphql,yaml}', '.github/**/*.yml', 'package.json', 'Dockerfile', 'tsconfig.json'],
  { cwd: ROOT },
);

test('each stop of the tour is in the source', () => {
  const stops = [...textOf('src/TOUR.md').matchAll(/^\| `([\w/.-]+\.ts)` +\| `([^`]+)` +\|/gm)];
  expect(stops.length).toBeGreaterThan(30);
  const gone = stops.filter(([, file = '', name = '']) => {
    const isFile = existsSync(join(ROOT, 'src', file));
    return !isFile || !new RegExp(`(?<![\\w.#])${name}\\b`).test(textOf(`src/${file}`));
  });
  expect(gone.map(([line]) => line)).toEqual([]);
});

test('each name in a document is a name in the code', () => {
  const code = FILES.map(textOf).join('\n');
  const gone = DOCUMENTS.flatMap((file) => {
    const isOfCode = (name: string) =>
      /^#?[a-z][\w.-]*$/.test(name) && (file.startsWith('src/') || /[a-z][A-Z]/.test(name));
    const isFile = (name: string) => FILES.some((path) => `/${path}`.endsWith(`/${name}`));
    return namesIn(textOf(file))
      .filter((name) => isOfCode(name) && !FOREIGN.has(name) && !isFile(name) && !stands(name, code))
      .map((name) => `${file}: ${name}`);
  });
  expect(gone).toEqual([]);
});

test('each name in a line about a file is in that file', () => {
  const lines = globSync('src/**/*.md', { cwd: ROOT }).flatMap((document) =>
    [...textOf(document).matchAll(/^(?:-|\|) `[\w/.-]+\.(?:js|ts)`.*$/gm)].map(([line]) => ({ document, line })),
  );
  expect(lines.length).toBeGreaterThan(70);
  const gone = lines.flatMap(({ document, line }) => {
    const names = namesIn(line);
    const files = FILES.filter((path) => names.some((name) => `/${path}`.endsWith(`/${name}`)));
    const code = files.map(textOf).join('\n');
    return names
      .filter((name) => /^#?[a-z]/.test(name) && !/\.(?:js|ts)$/.test(name) && !stands(name, code))
      .map((name) => `${document}: ${name} in ${files.join()}`);
  });
  expect(gone).toEqual([]);
});

/** The names in backticks, without the arguments of calls: those of code begin with a small letter. */
function namesIn(document: string): string[] {
  const prose = document.replaceAll(/^```.*?^```$/gms, '');
  return [...prose.matchAll(/`([#\w][\w/.-]*)(?:\([^`]*\))?`/g)].map(([, name = '']) => name);
}

/** Whether the name is in the code as a whole; `a.b` may be `a?.b` or `a['b']` there. */
function stands(name: string, code: string): boolean {
  return new RegExp(`(?<![\\w.])${name.replaceAll('.', String.raw`(?:\??\.|\[')`)}(?!\\w)`).test(code);
}

test('each path in a document is a file', () => {
  const gone = DOCUMENTS.flatMap((file) => {
    const paths = [...textOf(file).matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:js|ts|yaml))`/g)].map(([, path = '']) => path);
    return paths
      .filter((path) => !FILES.some((name) => `/${name}`.endsWith(`/${path}`)))
      .map((path) => `${file}: ${path}`);
  });
  expect(gone).toEqual([]);
});
