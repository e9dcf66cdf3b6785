import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** The suites of `startGateway` that ask over HTTP for what both ways answer. */
const YOGA_ALONE = ['test/server/*.test.ts', 'test/clients/*.test.ts'];

/**
 * Real processes, sockets and Redis by real clocks: a machine that gives them no time for a second looks to them like a
 * fault. So what fails is tried once more, and fails if it does so twice; nothing else is.
 */
const BY_REAL_CLOCKS = [
  'test/{cli,faults,hostile,prove,soak,stopping}/*.test.ts',
  'test/{server,writes}/replicas.test.ts',
  'test/throttle/state-file.test.ts',
];

/** What compares the two. */
const BOTH_WAYS = ['test/server/{remembered-answers.property,two-paths}.test.ts'];

export default defineConfig(({ mode }) => ({
  // As Node itself resolves packages. Vite's own choice adds "development", which gives tests a second copy of graphql
  // beside the one that petql's libraries import.
  ssr: { resolve: { conditions: ['node', 'module-sync', 'import', 'default'] } },
  test: {
    environment: 'node',
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // `npm run contract` alone speaks to a service of the outside, even where one is named for petql itself.
    env: mode === 'contract' ? {} : { PET_API_URL: '', PET_API_KEY: '' },
    // Tests wait for processes, sockets and Redis as long as they compute.
    maxWorkers: availableParallelism() + 1,
    projects: [
      {
        extends: true,
        test: { name: 'petql', include: ['test/**/*.test.ts'], exclude: [...BY_REAL_CLOCKS, '**/node_modules/**'] },
      },
      {
        extends: true,
        test: {
          name: 'real clocks',
          include: BY_REAL_CLOCKS,
          retry: 1,
          // When the others are through: they leave no processor idle.
          sequence: { groupOrder: 1 },
          maxWorkers: availableParallelism(),
        },
      },
      // What most requests take is a way past Yoga: the same tests hold without it.
      {
        extends: true,
        test: {
          name: 'Yoga alone',
          include: YOGA_ALONE,
          exclude: [...BY_REAL_CLOCKS, ...BOTH_WAYS],
          env: { PETQL_TEST_YOGA_ALONE: '1' },
        },
      },
    ],
  },
}));
