import { isEndpoint, pathOf } from './http-message.ts';
import type { HttpRequest, HttpResponse } from './http-message.ts';
import { isBrowsing } from './media-type.ts';
import { loadAssets } from '../../graphiql/assets.ts';
import { BAD_DAYS } from '../../graphiql/bad-days.ts';
import type { BadDay } from '../../graphiql/bad-days.ts';
import { EXAMPLE_OPERATIONS } from '../../graphiql/example-operations.ts';
import type { ExampleOperation } from '../../graphiql/example-operations.ts';

export interface GraphiqlOptions {
  /** The path of GraphQL, which is also the page's. */
  readonly endpoint: string;
  /** The key in the headers editor at the start; only one that is not secret. Empty where requests need none. */
  readonly apiKey: string | undefined;
  /** Whether the page leads to tabs with the demo keys of the sandbox. */
  readonly hasBadDays: boolean;
  readonly maxWaitMs: number;
}

/** Returns the page or one of its files; undefined when the request is for neither. The page sends no request to another machine. */
export function createGraphiql(options: GraphiqlOptions) {
  const { endpoint } = options;
  let files: ReturnType<typeof loadFiles> | undefined;
  return async (request: HttpRequest): Promise<HttpResponse | undefined> => {
    const path = pathOf(request);
    const isFile = request.method === 'GET' && path.startsWith(`${endpoint}/`);
    if (isEndpoint(path, endpoint) ? !isBrowsing(request) : !isFile) return undefined;
    files ??= loadFiles(options).catch((error: unknown) => {
      files = undefined;
      throw error;
    });
    return (await files).get(path);
  };
}

/** The editor adds style elements and has its fonts as data URLs; nothing may come from another origin. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; img-src 'self' data:; " +
  "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Where petql was installed with --omit=optional. */
const NOT_INSTALLED: HttpResponse = {
  status: 404,
  headers: { 'content-type': 'text/plain;charset=UTF-8', vary: 'Accept' },
  body: 'GraphiQL is not installed; add the package @graphql-yoga/render-graphiql. GraphQL is at this address by POST.\n',
};

/** Returns the page and its files by their paths, which have a hash of all files: under it they never change. */
async function loadFiles(options: GraphiqlOptions): Promise<ReadonlyMap<string, HttpResponse>> {
  const { endpoint } = options;
  const assets = await loadAssets();
  if (!assets) return new Map([endpoint, `${endpoint}/`].map((path) => [path, NOT_INSTALLED]));
  const assetsPath = `${endpoint}/graphiql/${assets.hash}`;
  const pageHeaders = {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-cache',
    'content-security-policy': CONTENT_SECURITY_POLICY,
    // Other clients get GraphQL at this address.
    vary: 'Accept',
  };
  const files = new Map<string, HttpResponse>();
  for (const path of [endpoint, `${endpoint}/`]) {
    // Relative to the page, so that they stay behind the prefix that a proxy has stripped.
    const shownPath = assetsPath.slice(path.lastIndexOf('/') + 1);
    files.set(path, { status: 200, headers: pageHeaders, body: pageHtml(shownPath, options) });
  }
  for (const [name, body] of assets.files) {
    const headers = {
      'content-type': name.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      // Every browser takes it.
      'content-encoding': 'gzip',
    };
    files.set(`${assetsPath}/${name}`, { status: 200, headers, body });
  }
  return files;
}

function pageHtml(assetsPath: string, { apiKey: keyOfAll = 'YOUR_API_KEY', ...rest }: GraphiqlOptions): string {
  const { hasBadDays, maxWaitMs } = rest;
  const needsKey = keyOfAll !== '';
  const headersOf = ({ apiKey = keyOfAll, headers }: Partial<BadDay>) =>
    JSON.stringify({ ...(needsKey && { Authorization: `Bearer ${apiKey}` }), ...headers }, null, 2);
  const tabsOf = (examples: readonly (BadDay | ExampleOperation)[]) =>
    examples.map(({ query, variables, ...example }) => ({ query, variables, headers: headersOf(example) }));
  const options = {
    title: 'petql',
    logo: PAW,
    defaultHeaders: headersOf({}),
    defaultTabs: tabsOf(EXAMPLE_OPERATIONS),
    badDays: hasBadDays && needsKey ? tabsOf(BAD_DAYS) : undefined,
    defaultEditorToolsVisibility: 'headers',
    shouldPersistHeaders: true,
    showPersistHeadersSettings: false,
    needsKey,
    maxWaitMs,
  };
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>petql</title>
    <link rel="icon" href="data:image/svg+xml,${encodeURIComponent(PAW)}" />
    <link rel="stylesheet" href="${assetsPath}/graphiql.css" />
  </head>
  <body id="body" class="no-focus-outline">
    <noscript>GraphiQL needs JavaScript.</noscript>
    <main id="root"></main>
    <script id="graphiql-options" type="application/json">${JSON.stringify(options).replaceAll('<', '\\u003c')}</script>
    <script src="${assetsPath}/graphiql.js"></script>
  </body>
</html>
`;
}

const PAW =
  '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32" viewBox="0 0 32 32" aria-hidden="true">' +
  '<g fill="#e10098"><ellipse cx="16" cy="22" rx="7" ry="6"/><circle cx="6" cy="14" r="3"/>' +
  '<circle cx="12" cy="8" r="3"/><circle cx="20" cy="8" r="3"/><circle cx="26" cy="14" r="3"/></g></svg>';
