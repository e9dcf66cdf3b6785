import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { EXPLORER_STYLE } from './explorer-style.ts';
import { EXPLORER_SCRIPT } from './page-script.ts';

const PACKAGE = '@graphql-yoga/render-graphiql/graphiql';
const ASSET_NAMES = ['graphiql.js', 'graphiql.css', 'editorWorkerService.js', 'graphql.js', 'json.js'] as const;
export type AssetName = (typeof ASSET_NAMES)[number];

/** The files of GraphiQL's page, compressed: 2.4 MB of 9. */
export interface Assets {
  /** The same for the same files. */
  readonly hash: string;
  readonly files: ReadonlyMap<AssetName, Buffer>;
}

/**
 * Reads the compressed files, which the first visit after an installation makes, and the build of the image: that takes 100 MB.
 *
 * @returns undefined where petql was installed with --omit=optional.
 */
export async function loadAssets(): Promise<Assets | undefined> {
  const place = await placeOfAssets();
  if (place === 'not-installed') return undefined;
  return (place && (await readAssets(place))) ?? makeAssets(place);
}

interface AssetPlace {
  readonly hash: string;
  readonly folder: string;
}

/** Returns where they are kept, beside this file; undefined for a bundle of petql, which has no files beside it. */
async function placeOfAssets(): Promise<AssetPlace | 'not-installed' | undefined> {
  if (typeof import.meta.resolve !== 'function') return undefined;
  const packageFile = attempt(() => new URL('../package.json', import.meta.resolve(PACKAGE)));
  if (!packageFile) return 'not-installed';
  const hash = hashOf([await readFile(packageFile, 'utf8'), EXPLORER_SCRIPT, EXPLORER_STYLE]);
  // A URL from parts would be a file for bundlers, which they look for.
  return { hash, folder: join(fileURLToPath(import.meta.url), '../assets', hash) };
}

/** Returns undefined where they have not been made yet. */
async function readAssets({ hash, folder }: AssetPlace): Promise<Assets | undefined> {
  const reading = ASSET_NAMES.map(async (name) => [name, await readFile(join(folder, `${name}.gz`))] as const);
  try {
    return { hash, files: new Map(await Promise.all(reading)) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function makeAssets(place: AssetPlace | undefined): Promise<Assets> {
  const graphiql = await import('@graphql-yoga/render-graphiql/graphiql');
  const sources = {
    // The script behind it finds the operation of a link by the editor's own functions.
    'graphiql.js': `globalThis.MonacoEnvironment = { globalAPI: true };\n${graphiql.js}${EXPLORER_SCRIPT}`,
    'graphiql.css': graphiql.css + EXPLORER_STYLE,
    'editorWorkerService.js': graphiql.editorWorkerService,
    'graphql.js': graphiql.graphqlWorker,
    'json.js': graphiql.jsonWorker,
  };
  const files = new Map<AssetName, Buffer>();
  for (const name of ASSET_NAMES) files.set(name, await promisify(gzip)(sources[name]));
  // Where nothing may be written, they are made again by the next process.
  if (place) await writeAssets(place.folder, files).catch(() => {});
  return { hash: place?.hash ?? hashOf(Object.values(sources)), files };
}

/** Another process sees all of them or none. */
async function writeAssets(folder: string, files: Assets['files']): Promise<void> {
  const unfinished = `${folder}-${randomUUID()}`;
  await mkdir(unfinished, { recursive: true });
  try {
    for (const [name, bytes] of files) await writeFile(join(unfinished, `${name}.gz`), bytes);
    await rename(unfinished, folder);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

function hashOf(texts: readonly string[]): string {
  return createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, 16);
}

function attempt<Found>(find: () => Found): Found | undefined {
  try {
    return find();
  } catch {
    return undefined;
  }
}
