import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const DOCUMENTS = ['README.md', ...globSync(['{src,test,schema}/**/*.md', '.github/*.md'], { cwd: ROOT })];
/** Options of other programs, and an example. The changelog names what is gone. */
const FOREIGN = new Set(['deletePet', 'persistConfig', 'persistedDocuments']);
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
    const prose = textOf(file).replaceAll(/^```.*?^```$/gms, '');
    const names = [...prose.matchAll(/`([#\w-]+(?:\.\w+)*(?:\(\))?)`/g)].map(([, name = '']) => name.replace('()', ''));
    const isOfCode = (name: string) => /[a-z][A-Z]/.test(name) || /\.(?:js|ts|yaml|json)$/.test(name);
    const isThere = (name: string) =>
      code.includes(name) ||
      FILES.some((path) => path.endsWith(name)) ||
      name.split('.').every((part) => code.includes(part));
    return names
      .filter((name) => isOfCode(name) && !FOREIGN.has(name) && !isThere(name))
      .map((name) => `${file}: ${name}`);
  });
  expect(gone).toEqual([]);
});

test('each path in a document is a file', () => {
  const gone = DOCUMENTS.flatMap((file) => {
    const paths = [...textOf(file).matchAll(/`((?:[\w.-]+\/)+[\w.-]+\.(?:js|ts|yaml))`/g)].map(([, path = '']) => path);
    return paths
      .filter((path) => !FILES.some((name) => `/${name}`.endsWith(`/${path}`)))
      .map((path) => `${file}: ${path}`);
  });
  expect(gone).toEqual([]);
});
