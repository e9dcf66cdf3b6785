import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { pathOf } from '../http/http-message.ts';
import type { HttpRequest, HttpResponse } from '../http/http-message.ts';
import { graphiqlPage } from './graphiql-page.ts';
import { EXPLORER_SCRIPT } from './explorer-script.ts';
import { EXPLORER_STYLE } from './explorer-style.ts';

/**
 * Returns the page or one of its files; undefined when the request is for neither. The page sends no request to another machine.
 *
 * @param endpoint the path of GraphQL, which is also the page's.
 * @param apiKey the key in the headers editor at the start; only one that is not secret.
 */
export function createGraphiql(endpoint: string, apiKey: string | undefined) {
  const assetsRoot = `${endpoint}/graphiql`;
  let assets: ReturnType<typeof loadAssets> | undefined;
  return async (request: HttpRequest): Promise<HttpResponse | undefined> => {
    const { method, headers } = request;
    if (method !== 'GET' && method !== 'HEAD') return undefined;
    const path = pathOf(request);
    const isPage = path === endpoint && headers['accept']?.includes('text/html');
    if (!isPage && !path.startsWith(`${assetsRoot}/`)) return undefined;
    const { version, files } = await loaded();
    if (isPage) return { status: 200, headers: PAGE_HEADERS, body: graphiqlPage(`${assetsRoot}/${version}`, apiKey) };
    const [askedVersion, name = ''] = path.slice(assetsRoot.length + 1).split('/', 2);
    const file = askedVersion === version ? files.get(name) : undefined;
    if (!file) return { status: 404, headers: TEXT, body: 'There is nothing at this path.\n' };
    if (!/\bgzip\b/.test(headers['accept-encoding'] ?? ''))
      return { status: 200, headers: file.headers, body: file.body };
    return { status: 200, headers: { ...file.headers, 'content-encoding': 'gzip' }, body: file.gzipped };
  };

  /** Loads the files once; again where that failed. */
  function loaded(): ReturnType<typeof loadAssets> {
    return (assets ??= loadAssets().catch((fault: unknown) => {
      assets = undefined;
      throw fault;
    }));
  }
}

const TEXT = { 'content-type': 'text/plain;charset=UTF-8' };

/** The editor adds style elements and has its fonts as data URLs; nothing may come from another origin. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "font-src 'self' data:",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-cache',
  'content-security-policy': CONTENT_SECURITY_POLICY,
  // Other clients get GraphQL at this address.
  vary: 'Accept',
};

interface Asset {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly gzipped: Buffer;
}

/** Returns the files of the page, and their hash: under it they never change. */
async function loadAssets(): Promise<{ version: string; files: ReadonlyMap<string, Asset> }> {
  // 9 MB, which the first visit loads and compresses once. The package would put them in each page.
  const graphiql = await import('@graphql-yoga/render-graphiql/graphiql');
  const sources = {
    'graphiql.js': graphiql.js + EXPLORER_SCRIPT,
    'graphiql.css': graphiql.css + EXPLORER_STYLE,
    'editorWorkerService.js': graphiql.editorWorkerService,
    'graphql.js': graphiql.graphqlWorker,
    'json.js': graphiql.jsonWorker,
  };
  const hash = createHash('sha256');
  const files = new Map<string, Asset>();
  for (const [name, source] of Object.entries(sources)) {
    hash.update(source);
    const body = Buffer.from(source);
    const headers = {
      'content-type': name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    };
    files.set(name, { headers, body, gzipped: await promisify(gzip)(body) });
  }
  return { version: hash.digest('hex').slice(0, 16), files };
}
