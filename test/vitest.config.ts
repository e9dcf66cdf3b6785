import { availableParallelism } from 'node:os';
import { dirname, join, matchesGlob, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

const ROOT = dirname(import.meta.dirname);

/** Too long for `npm test`: `verify smoke` runs them. */
const SMOKE = [
  // They fetch from npm's registry.
  'test/readme/clean-start.test.ts',
  'test/package/{consumer,graphql-16,next,npx}.test.ts',
  // They take a processor for 5 to 20 seconds: simulations, crowds, and a Redis that fails over.
  'test/container/entrypoint.test.ts',
  'test/graphiql/{assets,cost-line}.test.ts',
  'test/operate/{evicted-callers,redis-cluster,redis-sentinel}.test.ts',
  'test/package/package.test.ts',
  'test/plan/{explore,guards,leaving-clients,upstreams}.test.ts',
  'test/readme/traffic.test.ts',
  'test/security/{caller-memory,made-up-keys,slow-bodies,small-redis}.test.ts',
  'test/simulate/simulate.test.ts',
];

/** With `PETQL_GRAPHQL=16` the tests run with the older graphql that `package.json` allows. `verify smoke` runs some so. */
const WITH_GRAPHQL_16 =
  process.env['PETQL_GRAPHQL'] === '16' ? ['--import', join(import.meta.dirname, 'support/graphql-16.ts')] : [];

/**
 * Processes, sockets and Redis on real clocks: a busy machine looks to them like a fault. In the order in which they run:
 * first those that wait most, beside which the others start their processes.
 */
const ON_REAL_CLOCKS = [
  'test/{reads/wire-faults,plan/leaving-clients}.test.ts',
  'test/{reads/replicas,writes/replicas}.test.ts',
  'test/container/entrypoint.test.ts',
  'test/cli/*.test.ts',
  'test/operate/*.test.ts',
];

/** Runs the files on real clocks after those of all projects that keep the processors busy. */
class RealClocksLast extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of the sequencer, not an array's
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** -1 for a file that is not on real clocks. */
function rank({ moduleId }: TestSpecification): number {
  return ON_REAL_CLOCKS.findIndex((glob) => matchesGlob(relative(ROOT, moduleId), glob));
}

// `npm run contract` alone calls an outside service, even where one is set for petql itself.
if (!process.argv.includes('contract')) for (const name of ['PET_API_URL', 'PET_API_KEY']) delete process.env[name];

export default defineConfig({
  root: ROOT,
  // As Node itself resolves packages: Vite adds "development".
  plugins: [{ name: 'conditions-of-node', configResolved: ({ ssr }) => void ssr.resolve?.conditions?.splice(0) }],
  test: {
    environment: 'node',
    // Long enough for a machine that is busy with other things: a test that hangs is rare.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    // Two more than processors: some tests wait on real clocks.
    maxWorkers: availableParallelism() + 2,
    execArgv: ['--max-semi-space-size=32', ...WITH_GRAPHQL_16],
    maxConcurrency: 12,
    // Loading petql takes a file longer than most of its tests. Files leave nothing behind: what gateways share ends with the last one.
    isolate: false,
    // Node runs the TypeScript as it stands, as for a user. Vite's own runner costs a sixth of the time.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: RealClocksLast },
    projects: [
      {
        extends: true,
        test: { name: 'all', include: ['test/**/*.test.ts'], exclude: [...SMOKE, '**/node_modules/**'] },
      },
      { extends: true, test: { name: 'smoke', include: SMOKE } },
    ],
  },
});
