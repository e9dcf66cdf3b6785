import { loadedOnce } from '../../loaded-once.ts';
import { loadGraphiqlAssets } from './graphiql-assets.ts';
import { graphiqlPage } from './graphiql-page.ts';
import { SharedResponse } from '../shared-response.ts';

export interface GraphiqlOptions {
  /** The path of the GraphQL endpoint, which is also the page's. */
  readonly endpoint: string;
  /** The key that stands in the headers tab from the start. Only for a key that is no secret. */
  readonly apiKey?: string;
}

export interface Graphiql {
  /** The page or one of its files; undefined when the request is for neither. */
  answer(request: Request, path: string): Promise<Response> | undefined;
}

/** GraphiQL without any request to another machine. */
export function createGraphiql({ endpoint, apiKey }: GraphiqlOptions): Graphiql {
  const assetsRoot = `${endpoint}/graphiql`;
  const assets = loadedOnce(loadGraphiqlAssets);
  return {
    answer(request, path) {
      if (request.method !== 'GET') return undefined;
      if (path === endpoint && wantsHtml(request)) return page();
      return path.startsWith(`${assetsRoot}/`) ? asset(request, path.slice(assetsRoot.length + 1)) : undefined;
    },
  };

  async function page(): Promise<Response> {
    const { version } = await assets();
    return new Response(graphiqlPage(endpoint, `${assetsRoot}/${version}`, apiKey), {
      headers: {
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-cache',
        'content-security-policy': CONTENT_SECURITY_POLICY,
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
        // The same address answers GraphQL to other clients.
        vary: 'Accept',
      },
    });
  }

  async function asset(request: Request, name: string): Promise<Response> {
    const { version, files } = await assets();
    const file = name.startsWith(`${version}/`) ? files.get(name.slice(version.length + 1)) : undefined;
    if (!file) return new Response('There is nothing at this path.\n', { status: 404 });
    const zipped = /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '');
    return new SharedResponse(zipped ? file.gzipped : file.body, {
      headers: {
        'content-type': file.contentType,
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        vary: 'Accept-Encoding',
        ...(zipped ? { 'content-encoding': 'gzip' } : {}),
      },
    });
  }
}

/** The editor makes style elements of its own and carries its fonts as data; nothing may come from elsewhere. */
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

function wantsHtml(request: Request): boolean {
  return request.headers.get('accept')?.includes('text/html') ?? false;
}
