import type { RequestListener } from 'node:http';
import { parse } from 'graphql';
import type { Gateway, TypedDocument } from '../../src/index.ts';

interface PetsData {
  readonly pets: readonly { readonly id: string; readonly name: string }[] | null;
}

const AVAILABLE_PETS: TypedDocument<PetsData, { limit: number }> = parse(`
  query AvailablePets($limit: Int!) {
    pets(status: AVAILABLE, limit: $limit) {
      id
      name
    }
  }
`);

/** How long a visitor may wait for the page, in milliseconds. */
const PATIENCE_MS = 2_000;

/** A backend for a frontend: it makes pages of what petql answers, with a key that no visitor ever sees. */
export function createBff(gateway: Gateway): RequestListener {
  return (request, response) => {
    const visitor = new AbortController();
    response.once('close', () => visitor.abort());
    void answer(request.url, visitor.signal)
      .catch(() => page(500, 'Something went wrong', 'Please try again.'))
      .then(({ status, headers, html }) => response.writeHead(status, headers).end(html));
  };

  async function answer(url: string | undefined, signal: AbortSignal): Promise<Page> {
    if (url !== '/') return page(404, 'Not here', 'There is no such page.');
    const variables = { limit: 20 };
    const operation = { document: AVAILABLE_PETS, variables, signal, waitMs: PATIENCE_MS };
    const { data, errors = [] } = await gateway.execute(operation);
    if (data?.pets) return page(200, 'Waiting for a home', list(data.pets.map(({ name }) => name)));
    const { code, retryAfterMs } = errors[0]?.extensions ?? {};
    if (code !== 'RATE_LIMITED') return page(502, 'Something went wrong', 'Please try again later.');
    const busy = page(503, 'Back soon', 'Too many visitors at once. Please try again in a moment.');
    return { ...busy, headers: { ...busy.headers, 'retry-after': String(Math.ceil(Number(retryAfterMs) / 1_000)) } };
  }
}

interface Page {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly html: string;
}

function page(status: number, title: string, body: string): Page {
  return {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': "default-src 'none'" },
    html: `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>${title}</title>
  </head>
  <body>
    <h1>${title}</h1>
    ${body}
  </body>
</html>
`,
  };
}

function list(items: readonly string[]): string {
  return `<ul>\n${items.map((item) => `<li>${escaped(item)}</li>`).join('\n')}\n</ul>`;
}

/** Names come from clients that created pets; they stand between tags, never inside one. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
