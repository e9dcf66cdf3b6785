import { dirname, join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { beforeAll, expect, test } from 'vitest';
import { packPetql } from './consumer-project.ts';

const PREFIX = '/node_modules/petql/';

let tarball: Buffer;
let packed: ReturnType<typeof createPackageFromTarballData>;

beforeAll(async () => {
  tarball = await packPetql();
  packed = createPackageFromTarballData(new Uint8Array(tarball));
}, 120_000);

test('the package is what publint expects', async () => {
  const { buffer, byteOffset, byteLength } = tarball;
  const bytes = buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer;
  expect((await publint({ pack: { tarball: bytes }, strict: true })).messages).toEqual([]);
});

test('the package has types that every way of resolving modules finds, where it finds ES modules at all', async () => {
  const analysis = await checkPackage(packed);
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
    'schema/RECIPES.md',
    'schema/pet-api.openapi.yaml',
    'schema/recipes/apollo.ts',
    'schema/recipes/fetch-hook.ts',
    'schema/recipes/fetch.ts',
    'schema/recipes/petql.ts',
    'schema/recipes/urql.ts',
    'schema/schema.graphql',
    'src/*/README.md',
    'src/EMBEDDING.md',
    'src/README.md',
    'src/TESTING.md',
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

test('no page of the package has a dead link', () => {
  const pages = packedFiles().filter((file) => file.endsWith('.md') || file === 'llms.txt');
  const links = pages.flatMap((page) =>
    [...textOf(page).matchAll(/(?:\]\(|(?:src|href)=")(?!https?:|#)([^)#"]+)/g)].map(([, link = '']) => ({
      page,
      link,
    })),
  );
  expect(links.length).toBeGreaterThan(50);
  const dead = links.filter(({ page, link }) => !packedFiles().includes(join(dirname(page), link)));
  expect(dead).toEqual([]);
});

/** What each entry of the package makes a program's types depend on: petql's files, and other packages. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  'dist/index.d.ts': [
    'dist/caller/key-report.d.ts',
    'dist/caller/quota.d.ts',
    'dist/common/clock.d.ts',
    'dist/common/errors.d.ts',
    'dist/common/log.d.ts',
    'dist/common/node-version.d.ts',
    'dist/common/plan.d.ts',
    'dist/common/usage.d.ts',
    'dist/index.d.ts',
    'dist/server/gateway-api.d.ts',
    'dist/server/http-counts.d.ts',
    'dist/server/http/fetch.d.ts',
    'dist/server/listener.d.ts',
    'dist/server/operation.d.ts',
    'dist/settings/gateway-options.d.ts',
    'graphql',
    'node:http',
  ],
  'dist/program/sandbox/sandbox.d.ts': [
    'dist/common/clock.d.ts',
    'dist/common/log.d.ts',
    'dist/common/node-version.d.ts',
    'dist/common/plan.d.ts',
    'dist/pets/int64.d.ts',
    'dist/pets/pet.d.ts',
    'dist/program/sandbox/demo-keys.d.ts',
    'dist/program/sandbox/sandbox-call.d.ts',
    'dist/program/sandbox/sandbox.d.ts',
    'dist/program/sandbox/seed.d.ts',
    'dist/program/sandbox/stories.d.ts',
    'dist/program/sandbox/usage-limits.d.ts',
    'dist/settings/gateway-options.d.ts',
  ],
};

test.each(Object.entries(TYPES))('the types of %s import no internals', (entry, expected) => {
  const reached = new Set<string>();
  reach(entry);
  expect([...reached].toSorted()).toEqual(expected);

  function reach(file: string): void {
    if (reached.has(file)) return;
    reached.add(file);
    if (!file.startsWith('dist/')) return;
    for (const [, name = ''] of textOf(file).matchAll(/(?:from|import) '([^']+)'/g)) {
      reach(name.startsWith('.') ? join(dirname(file), name.replace(/\.ts$/, '.d.ts')) : name);
    }
  }
});

function packedFiles(): string[] {
  return packed.listFiles().map((file) => file.replace(PREFIX, ''));
}

function textOf(file: string): string {
  return packed.readFile(PREFIX + file);
}
