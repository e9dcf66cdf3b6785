import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { TestContext } from 'vitest';

/**
 * Returns the seed in FUZZ_SEED, or else `fallback`. By default it differs from run to run, but in continuous integration, where a
 * failure has to be the fault of the change.
 */
export function chooseSeed(fallback = process.env['CI'] ? 1 : Date.now() % 1_000_000): number {
  return Number(process.env['FUZZ_SEED'] ?? fallback);
}

/** Prints the seed of a test that fails, and writes its history to a file that the print names. */
export function keepHistory({ task, onTestFailed }: TestContext, seed: number, history: () => unknown): void {
  onTestFailed(() => {
    const file = join(tmpdir(), `petql-failed-${process.pid}-${task.id}.json`);
    writeFileSync(
      file,
      JSON.stringify(history(), (_key, value) => (typeof value === 'bigint' ? `${value}` : value), 1),
    );
    const path = relative(process.cwd(), task.file.filepath);
    process.stderr.write(
      `\nFAILED ${task.name}\n  repeat: FUZZ_SEED=${seed} npm test -- ${path}\n  history: ${file}\n`,
    );
  });
}

/** All cases in `verify throttle`, and every `nth` of them in `npm test`. */
export function chooseCases<Case>(cases: readonly Case[], nth: number): Case[] {
  return cases.filter((_, index) => process.env['PETQL_ALL_CASES'] !== undefined || index % nth === 0);
}
