import { defineConfig } from 'oxlint';

/** The house, from its ground up (README, "Working on it"): a folder imports from what stands before it, never after. */
const FLOORS = ['store', 'upstream', 'throttle', 'caller', 'schema', 'server', 'admin'];
/** What puts the floors together and what starts it stands above all of them. */
const ROOF = ['gateway', 'main', 'index'];

/** Each of these is known by one file, so that it can be replaced alone. */
const ONE_FILE_LIBRARIES: Record<string, string> = {
  '@opentelemetry/api': 'src/spans.ts',
  undici: 'src/upstream/transport.ts',
  dataloader: 'src/caller/demand-loader.ts',
  bottleneck: 'src/throttle/slots.ts',
  ioredis: 'src/store/redis.ts',
  'prom-client': 'src/admin/metrics.ts',
};

export default defineConfig({
  plugins: ['typescript', 'unicorn', 'import', 'promise', 'node', 'oxc', 'vitest'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  rules: {
    'import/no-cycle': 'error',
    'eslint/eqeqeq': 'error',
    'eslint/max-params': ['error', { max: 4 }],
    'eslint/no-console': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-misused-spread': ['error', { allow: ['string'] }],
    'typescript/no-non-null-assertion': 'error',
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    // Pothos types and the entry points register themselves by being imported.
    'import/no-unassigned-import': 'off',
    // fast-check's own examples say fc.string().
    'import/no-named-as-default-member': 'off',
    // Wire data and the edges of libraries are narrowed by assertion, close to the check that justifies it.
    'typescript/no-unsafe-type-assertion': 'off',
    // TypeScript's noImplicitReturns says the same and understands exhaustive switches.
    'typescript/consistent-return': 'off',
    // Plugin hooks of Yoga and undici hand out functions that use no `this`.
    'typescript/unbound-method': 'off',
    // These find style, and the code has reasons for its own: order that matters, options spread at the edges.
    'eslint/no-await-in-loop': 'off',
    'oxc/no-map-spread': 'off',
    'promise/always-return': 'off',
    'promise/no-promise-in-callback': 'off',
  },
  overrides: [
    floor('src/*.ts', ['./*/**', ...ROOF.map((file) => `./${file}.ts`)]),
    // Each floor in turn may not reach the ones above it, nor the sandbox, which is another program.
    ...FLOORS.map((name, level) =>
      floor(`src/${name}/**`, above([...FLOORS.slice(level + 1), ...ROOF, 'sandbox', ...hidden(name)])),
    ),
    // The sandbox counts and answers by itself, so that a mistake of the gateway cannot hide in it.
    floor('src/sandbox/**', above([...FLOORS, ...ROOF])),
    { files: ['src/gateway.ts', 'src/main.ts', 'src/index.ts'], rules: restricted([]) },
    ...Object.entries(ONE_FILE_LIBRARIES).map(([library, file]) => ({
      files: [file],
      rules: restricted(floorRules(file), library),
    })),
    // What petql is compared with is Bottleneck's own recipe.
    { files: ['test/prove/naive.ts'], rules: restricted([], 'bottleneck') },
    { files: ['src/main.ts'], rules: { 'eslint/no-console': 'off' } },
    {
      files: ['test/**'],
      rules: {
        // What comes over the wire is any shape until a test has looked at it.
        'typescript/no-explicit-any': 'off',
        // Expectations that hold after every test of a file, and suites whose names come from elsewhere.
        'vitest/no-standalone-expect': 'off',
        'vitest/valid-title': 'off',
        // Helpers stand where the suite that uses them is.
        'unicorn/consistent-function-scoping': 'off',
        'vitest/expect-expect': ['error', { assertFunctionNames: ['expect', 'fc.assert'] }],
      },
    },
  ],
});

function floor(files: string, forbidden: string[]) {
  return { files: [files], rules: restricted(forbidden) };
}

/** A resolver sees the caller's pets and nothing below; the server speaks to callers alone. */
function hidden(name: string): string[] {
  return ['schema', 'server', 'admin'].includes(name) ? ['store', 'upstream', 'throttle'] : [];
}

function above(names: string[]): string[] {
  return names.flatMap((name) => [`**/../${name}/**`, `**/../${name}.ts`]);
}

function floorRules(file: string): string[] {
  const level = FLOORS.findIndex((name) => file.startsWith(`src/${name}/`));
  return above([...FLOORS.slice(level + 1), ...ROOF, 'sandbox']);
}

function restricted(forbidden: string[], allowedLibrary?: string): Record<string, ['error', object]> {
  const libraries = Object.entries(ONE_FILE_LIBRARIES).filter(([library]) => library !== allowedLibrary);
  return {
    'eslint/no-restricted-imports': [
      'error',
      {
        paths: libraries.map(([name, file]) => ({ name, message: `${file} is the one file that knows ${name}.` })),
        patterns: forbidden.length > 0 ? [{ group: forbidden, message: 'Imports go down only.' }] : [],
      },
    ],
  };
}
