import { globSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One replacement in petql's source. */
export interface Replacement {
  /** It has to be in the sources exactly once. */
  readonly from: string;
  readonly to: string;
}

export interface ChangedCopy extends AsyncDisposable {
  readonly folder: string;
}

const ROOT = join(import.meta.dirname, '../..');
/** What tests read. */
const COPIED = ['src', 'test', 'schema', 'package.json', 'tsconfig.json', 'README.md', 'LICENSE'];

/**
 * Copies petql and its tests into a folder of their own, and replaces one text there.
 *
 * @throws Error where the text is not in `src` exactly once.
 */
export async function copyPetql(replacement?: Replacement): Promise<ChangedCopy> {
  const folder = await mkdtemp(join(tmpdir(), 'petql-copy-'));
  const copy = { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  try {
    for (const name of COPIED) await cp(join(ROOT, name), join(folder, name), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    if (replacement) await replace(replacement, folder);
    return copy;
  } catch (error) {
    await copy[Symbol.asyncDispose]();
    throw error;
  }
}

async function replace({ from, to }: Replacement, folder: string): Promise<void> {
  const sources = await sourcesIn(folder);
  if (timesIn(sources, from) !== 1) throw new Error(`expected once in src: ${from}`);

  for (const [path, text] of sources) {
    const replaced = text.replace(from, () => to);
    if (replaced !== text) await writeFile(path, replaced);
  }
}

/** Returns the texts that cannot be replaced any more: they are not in the sources exactly once. */
export async function findStale<Of extends Replacement>(replacements: readonly Of[]): Promise<Of[]> {
  const sources = await sourcesIn(ROOT);
  return replacements.filter(({ from }) => timesIn(sources, from) !== 1);
}

/** The texts of petql's sources, by their paths. */
async function sourcesIn(folder: string): Promise<Map<string, string>> {
  const paths = globSync('src/**/*.ts', { cwd: folder }).map((name) => join(folder, name));
  return new Map(await Promise.all(paths.map(async (path) => [path, await readFile(path, 'utf8')] as const)));
}

function timesIn(sources: ReadonlyMap<string, string>, text: string): number {
  return [...sources.values()].reduce((times, source) => times + source.split(text).length - 1, 0);
}
