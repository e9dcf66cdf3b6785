import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { beforeAll, expect, test } from 'vitest';
import { packPetql } from './consumer-project.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

let tarball: Buffer;

beforeAll(async () => {
  tarball = await packPetql();
}, 120_000);

test('the package is what publint expects', async () => {
  const { buffer, byteOffset, byteLength } = tarball;
  const packed = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
  expect((await publint({ pack: { tarball: packed }, strict: true })).messages).toEqual([]);
});

test('the package has types that every way of resolving modules finds, where it finds ES modules at all', async () => {
  const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(tarball)));
  const problems = analysis.types ? analysis.problems : ['there are no types'];
  // Without `exports` nothing is found, and CommonJS gets the ES module, which Node's require loads.
  const expected = ['.', './sandbox'].flatMap((entrypoint) => [
    { kind: 'NoResolution', entrypoint, resolutionKind: 'node10' },
    { kind: 'CJSResolvesToESM', entrypoint, resolutionKind: 'node16-cjs' },
  ]);
  expect(problems).toEqual(expected.map((problem) => expect.objectContaining(problem)));
});

test('the package holds what runs, its types, the schema and the documentation, and neither sources nor tests', () => {
  const kinds = packedFiles().map((file) =>
    file.replace(/^dist\/.*?((?:\.d)?\.\w+)$/, 'dist/*$1').replace(/^src\/[\w/]+\//, 'src/*/'),
  );
  expect([...new Set(kinds)].toSorted()).toEqual([
    '.github/CONTRIBUTING.md',
    '.github/SECURITY.md',
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist/*.d.ts',
    'dist/*.js',
    'llms.txt',
    'package.json',
    'schema/README.md',
    'schema/pet-api.openapi.yaml',
    'schema/schema.graphql',
    'src/*/README.md',
    'src/README.md',
    'src/TOUR.md',
    'src/TROUBLESHOOTING.md',
    'src/operation.svg',
    'test/README.md',
    'test/container/alerts.yaml',
    'test/container/compose.yaml',
    'test/container/kubernetes.yaml',
    'test/graphiql/graphiql.png',
  ]);
});

test('the package holds every file that README links to', async () => {
  const readme = await readFile(join(ROOT, 'README.md'), 'utf8');
  const links = [...readme.matchAll(/(?:\]\(|src=")(?!https:)([^)#"]+)/g)].map(([, link]) => link);
  expect(links.length).toBeGreaterThan(5);
  for (const link of links) expect(packedFiles()).toContain(link);
});

function packedFiles(): string[] {
  const files = createPackageFromTarballData(new Uint8Array(tarball)).listFiles();
  return files.map((file) => file.replace('/node_modules/petql/', ''));
}
