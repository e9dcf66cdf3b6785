import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { START_SCRIPT, START_STYLE } from './graphiql-start.ts';

export interface GraphiqlAsset {
  readonly contentType: string;
  readonly body: Buffer;
  readonly gzipped: Buffer;
}

export interface GraphiqlAssets {
  /** Names the content: assets under it never change. */
  readonly version: string;
  readonly files: ReadonlyMap<string, GraphiqlAsset>;
}

const compress = promisify(gzip);

/**
 * GraphiQL's script, style and editor workers, from @graphql-yoga/render-graphiql. That package puts all of its 9 MB
 * into every page; as files of their own they are compressed once and cached by the browser for good.
 */
export async function loadGraphiqlAssets(): Promise<GraphiqlAssets> {
  // Loaded on the first visit: nothing else needs these 9 MB.
  const { css, editorWorkerService, graphqlWorker, js, jsonWorker } =
    await import('@graphql-yoga/render-graphiql/graphiql');
  const sources = {
    'graphiql.js': js + START_SCRIPT,
    'graphiql.css': css + START_STYLE,
    'editorWorkerService.js': editorWorkerService,
    'graphql.js': graphqlWorker,
    'json.js': jsonWorker,
  };
  const hash = createHash('sha256');
  const files = new Map<string, GraphiqlAsset>();
  for (const [name, source] of Object.entries(sources)) {
    hash.update(source);
    const body = Buffer.from(source);
    const contentType = name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8';
    files.set(name, { contentType, body, gzipped: await compress(body) });
  }
  return { version: hash.digest('hex').slice(0, 16), files };
}
