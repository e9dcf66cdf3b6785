import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { copyPetql, findStale } from './changed-copy.ts';
import { AREAS } from './mutants/list.ts';
import type { Mutant } from './mutants/list.ts';
import type { Suite } from './suite.ts';

/** They wait on real clocks or start processes, which a busy machine can fail: for mutants alone that nothing else finds. */
const LEFT_OUT = [
  'test/plan/leaving-clients.test.ts',
  'test/*/{replicas,wire-faults}.test.ts',
  'test/security/{secrets,strangers}.test.ts',
  'test/operate/{files,log,metrics,npm-start,proxy,redis,redis-cluster,redis-sentinel,shutdown,unread-log}.test.ts',
];
const TEST_TIMEOUT_MS = 60_000;
/** A mutant may wait for ever. */
const MAX_RUN_MS = 900_000;

/** What Vitest writes. */
interface Report {
  readonly success: boolean;
  readonly testResults: readonly FileResult[];
}

interface FileResult {
  readonly name: string;
  readonly status: 'failed' | 'passed';
  /** What it said where it could not even be loaded. */
  readonly message: string;
  readonly assertionResults: readonly {
    readonly status: 'failed' | 'passed' | 'skipped';
    readonly failureMessages?: readonly string[];
  }[];
}

interface Outcome {
  /** The test files that ran. */
  readonly files: readonly string[];
  readonly failed: readonly string[];
  /** Of these, the files that a slow machine can fail too. */
  readonly timedOut: readonly string[];
}

/** What the mutants of one run have shown, by their names. */
type Matrix = Map<string, Outcome>;

/** Plants one defect after the other in a copy of petql, until a test finds it. */
export const mutants: Suite = {
  about: 'breaks one rule after the other, until a test finds it',
  checks: checksOf(),
};

/** The same, but each test file of the area runs to its end: which files find which defects. */
export const kills: Suite = {
  about: 'breaks one rule after the other, and shows all test files that find it',
  checks: checksOf(new Map()),
};

/** @param matrix is filled by runs to the end; without it they end at the first failure. */
function checksOf(matrix?: Matrix): Suite['checks'] {
  return [
    { name: 'unchanged', goal: 'all these tests pass without a defect', run: () => runUnchanged() },
    ...AREAS.flatMap(({ mutants: planted, folders }) =>
      planted.map((mutant) => ({
        name: mutant.name,
        goal: `a test finds where this is broken: ${mutant.rule}`,
        run: () => hunt(mutant, folders, matrix),
      })),
    ),
    ...(matrix ? [{ name: 'by-file', goal: 'what each test file finds', run: async () => rowsByFile(matrix) }] : []),
  ];
}

async function runUnchanged(): Promise<readonly Row[]> {
  const folders = [...new Set(AREAS.flatMap((area) => area.folders))];
  const { files, failed } = await runIn(folders, { isWhole: true });
  const promise = 'no test fails without a defect';
  return [rowOf({ promise, looked: files.length, problems: failed, measured: '' })];
}

async function hunt(mutant: Mutant, folders: readonly string[], matrix?: Matrix): Promise<readonly Row[]> {
  const outcome = await runIn(folders, { mutant, isWhole: matrix !== undefined });
  matrix?.set(mutant.name, outcome);

  const { files, failed, timedOut } = outcome;
  const isFound = failed.length > timedOut.length;
  const problems = isFound ? [] : [timedOut.length > 0 ? `only timeouts: ${timedOut.join(', ')}` : 'no test finds it'];
  return [
    rowOf({
      promise: mutant.rule,
      looked: files.length,
      problems,
      measured: failed.join(', '),
      figures: { files, failed, timedOut },
    }),
  ];
}

/** A row for each test file: how many mutants ran it, how many of them it finds, and which ones no other file finds. */
function rowsByFile(matrix: Matrix): Row[] {
  const outcomes = [...matrix];
  const files = new Set(outcomes.flatMap(([, outcome]) => outcome.files));

  return [...files].toSorted().map((file) => {
    const met = outcomes.filter(([, outcome]) => outcome.files.includes(file));
    const found = met.filter(([, { failed }]) => failed.includes(file));
    const alone = found.filter(([, { failed }]) => failed.length === 1).map(([name]) => name);
    const measured = `finds ${found.length}${alone.length > 0 ? `, alone ${alone.join(', ')}` : ''}`;
    return rowOf({ promise: file, looked: met.length, problems: [], measured });
  });
}

/** Runs the test files of these folders in a copy of petql that has the defect. */
async function runIn(
  folders: readonly string[],
  { mutant, isWhole }: { readonly mutant?: Mutant; readonly isWhole: boolean },
): Promise<Outcome> {
  await using copy = await copyPetql(mutant);
  const { folder } = copy;
  const files = [...filesIn(folder, folders), ...(mutant?.alsoRun ? [`test/${mutant.alsoRun}.test.ts`] : [])];
  const report = await runTests(folder, files, isWhole ? 0 : 1);
  const outcome = outcomeOf(folder, report);
  // The end of a run may cut off the very failure that caused it.
  const isCutOff = !isWhole && !report.success && outcome.failed.length === 0;
  return isCutOff ? outcomeOf(folder, await runTests(folder, files, 0)) : outcome;
}

/** Looks for the defects that can no longer be planted: petql has changed, and they have to follow. */
export async function findStaleMutants(promise: string): Promise<readonly Row[]> {
  const all = AREAS.flatMap((area) => area.mutants);
  const stale = await findStale(all);
  const problems = stale.map(({ name, from }) => `${name}: expected once in src: ${from}`);
  return [rowOf({ promise, looked: all.length, problems, measured: '' })];
}

function filesIn(root: string, folders: readonly string[]): string[] {
  const patterns = folders.map((name) => `test/${name}/*.test.ts`);
  return globSync(patterns, { cwd: root, exclude: LEFT_OUT });
}

/** @param bail ends the run after so many failures; 0 never does. */
async function runTests(folder: string, files: readonly string[], bail: number): Promise<Report> {
  const report = join(folder, 'report.json');
  const options = ['--config', 'test/vitest.config.ts', '--reporter', 'json', '--outputFile', report];
  const limits = ['--bail', String(bail), '--testTimeout', String(TEST_TIMEOUT_MS)];
  // One seed, so that each mutant meets the same cases.
  const env = { ...process.env, CI: '1' };
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...options, ...limits, ...files], {
    cwd: folder,
    env,
    stdio: 'ignore',
    timeout: MAX_RUN_MS,
  });
  await once(child, 'close');
  return JSON.parse(await readFile(report, 'utf8')) as Report;
}

function outcomeOf(folder: string, { testResults }: Report): Outcome {
  // A file that the end of the run has cut off counts as failed too, without a failure.
  const failed = testResults.filter((result) => failuresIn(result).length > 0);
  const nameOf = ({ name }: FileResult) => relative(folder, name).replace(/^test\/(.*)\.test\.ts$/, '$1');
  const hasOnlyTimedOut = (result: FileResult) => failuresIn(result).every((text) => text.includes('timed out in'));
  return {
    files: testResults.map(nameOf),
    failed: failed.map(nameOf),
    timedOut: failed.filter(hasOnlyTimedOut).map(nameOf),
  };
}

function failuresIn({ message, assertionResults }: FileResult): readonly string[] {
  const failed = assertionResults.filter(({ status }) => status === 'failed');
  const texts = failed.map(({ failureMessages = [] }) => failureMessages.join('\n'));
  return message === '' ? texts : [message, ...texts];
}
