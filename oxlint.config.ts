import { defineConfig } from 'oxlint';

/** The folders from the lowest up: each imports from those before it only. */
const LAYERS = [
  'common',
  'store',
  'upstream',
  'settings',
  'pets',
  'closed',
  'quota',
  'line',
  'reads',
  'writes',
  'caller',
  'schema',
  'graphiql',
  'server',
  'admin',
];
/** The rooms that keep a key within its plan. They know neither pets nor HTTP. */
const THROTTLE = ['closed', 'quota', 'line'];
/** The files that put the layers together. */
const TOP = ['gateway', 'index'];

/** Programs over the library, which no layer imports. */
const PROGRAMS = ['program'];

/** What a pet is, for programs that share no layer. */
const A_PET = ['!../../pets/pet.ts', '!../../pets/int64.ts', '!../../settings/http-origin.ts'];

/** One file imports each of these, so that it can be replaced. */
const ONE_FILE_LIBRARIES: Record<string, string> = {
  '@opentelemetry/api': 'src/common/tracing.ts',
  undici: 'src/upstream/connections.ts',
  dataloader: 'src/caller/request-context.ts',
  bottleneck: 'src/line/call-queue.ts',
  ioredis: 'src/store/redis.ts',
  'prom-client': 'src/admin/metrics.ts',
};

export default defineConfig({
  // It imports the packed petql, whose types are there only after a build; a test compiles it strictly.
  ignorePatterns: ['test/package/consumer', 'test/package/graphql-16', 'test/package/next'],
  plugins: ['typescript', 'unicorn', 'import', 'promise', 'node', 'oxc', 'vitest'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  rules: {
    'import/no-cycle': ['error', { ignoreTypes: false }],
    'eslint/eqeqeq': 'error',
    'eslint/max-params': ['error', { max: 4 }],
    'eslint/no-console': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-misused-spread': ['error', { allow: ['string'] }],
    'typescript/no-non-null-assertion': 'error',
    'typescript/unbound-method': 'error',
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    // Pothos types and the entry points register themselves by being imported.
    'import/no-unassigned-import': 'off',
    // fast-check's own examples say fc.string().
    'import/no-named-as-default-member': 'off',
    // Wire data and the edges of libraries are narrowed by assertion, close to the check that justifies it.
    'typescript/no-unsafe-type-assertion': 'off',
    // TypeScript's noImplicitReturns says the same and understands exhaustive switches.
    'typescript/consistent-return': 'off',
    // The code awaits in loops where order matters, and spreads options.
    'eslint/no-await-in-loop': 'off',
    'oxc/no-map-spread': 'off',
    'promise/always-return': 'off',
    'promise/no-promise-in-callback': 'off',
  },
  overrides: [
    // A layer imports none above it, and none of the other programs.
    ...LAYERS.map((name, level) =>
      layer(`src/${name}/**`, above([...LAYERS.slice(level + 1), ...TOP, ...PROGRAMS, ...hidden(name)])),
    ),
    // The account is pure: it imports neither the store nor what is closed nor the rest of its room.
    layer('src/quota/account/**', [
      ...above([...LAYERS.slice(LAYERS.indexOf('quota') + 1), ...TOP, ...PROGRAMS, 'store', 'closed']),
      '../*.ts',
    ]),
    // The cache imports nothing of the reads that wait for calls.
    layer('src/reads/cache/**', [
      ...above([...LAYERS.slice(LAYERS.indexOf('reads') + 1), ...TOP, ...PROGRAMS]),
      '../*.ts',
    ]),
    // The sandbox shares no layer, so that a mistake of the gateway cannot hide in it.
    layer('src/program/sandbox/**', [
      ...above([...LAYERS.filter((name) => name !== 'common'), ...TOP, 'simulate']),
      '../*.ts',
      ...A_PET,
      '!../../settings/gateway-options.ts',
      '!../../settings/dispatched-call.ts',
    ]),
    // The simulation runs the whole gateway, as a library, over the sandbox.
    layer('src/program/simulate/**', [
      ...above([...LAYERS.filter((name) => name !== 'common'), ...TOP.filter((file) => file !== 'index')]),
      '../*.ts',
      ...A_PET,
      '!../../settings/**',
    ]),
    { files: TOP.map((file) => `src/${file}.ts`), rules: restricted([]) },
    ...Object.entries(ONE_FILE_LIBRARIES).map(([library, file]) => ({
      files: [file],
      rules: restricted(layerRules(file), library),
    })),
    { files: ['src/program/*.ts'], rules: { 'eslint/no-console': 'off' } },
    {
      // Scripts of the browser share one scope. Their tsconfig.json finds what a script alone does not use.
      files: ['src/**/page/*.js'],
      rules: { 'eslint/no-unused-vars': 'off' },
    },
    {
      files: ['test/**'],
      rules: {
        // Responses have any shape until a test checks it.
        'typescript/no-explicit-any': 'off',
        // Expectations that hold after every test of a file, and suites whose names come from elsewhere.
        'vitest/no-standalone-expect': 'off',
        'vitest/valid-title': 'off',
        // Helpers are next to the suite that uses them.
        'unicorn/consistent-function-scoping': 'off',
        'vitest/expect-expect': ['error', { assertFunctionNames: ['expect', 'expectCost', 'fc.assert'] }],
      },
    },
  ],
});

function layer(files: string, forbidden: string[]) {
  return { files: [files], rules: restricted(forbidden) };
}

/** Resolvers and the server use callers and pets, and nothing else below. */
function hidden(name: string): string[] {
  if (THROTTLE.includes(name)) return ['pets', 'upstream'];
  if (name === 'graphiql') return LAYERS;
  return ['schema', 'server', 'admin'].includes(name) ? ['store', 'upstream', ...THROTTLE] : [];
}

function above(names: string[]): string[] {
  return names.flatMap((name) => [`**/../${name}/**`, `**/../${name}.ts`]);
}

function layerRules(file: string): string[] {
  const level = LAYERS.findIndex((name) => file.startsWith(`src/${name}/`));
  return above([...LAYERS.slice(level + 1), ...TOP, ...PROGRAMS]);
}

function restricted(forbidden: string[], allowedLibrary?: string): Record<string, ['error', object]> {
  const libraries = Object.entries(ONE_FILE_LIBRARIES).filter(([library]) => library !== allowedLibrary);
  return {
    'eslint/no-restricted-imports': [
      'error',
      {
        paths: libraries.map(([name, file]) => ({ name, message: `${file} is the one file that imports ${name}.` })),
        patterns: forbidden.length > 0 ? [{ group: forbidden, message: 'Imports go down only.' }] : [],
      },
    ],
  };
}
