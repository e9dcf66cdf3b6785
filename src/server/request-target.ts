import type { IncomingMessage } from 'node:http';

const ABSOLUTE = /^https?:\/\/([^/?#]+)([^#]*)/i;

/**
 * The path, with its query, that a request is for. A client may name the whole address, as it does to proxies (RFC 9112,
 * section 3.2.2).
 */
export function targetPath(target: string): string {
  if (target.startsWith('/')) return target;
  const [, , path] = ABSOLUTE.exec(target) ?? [];
  if (path === undefined) return target;
  return path.startsWith('/') ? path : `/${path}`;
}

/** Gives a request that names the whole address the path alone, and for its `Host` the one in there, which counts alone. */
export function takeTarget(request: IncomingMessage): void {
  const { url = '/', headers } = request;
  if (url.startsWith('/')) return;
  const [, host] = ABSOLUTE.exec(url) ?? [];
  if (host === undefined) return;
  headers.host = host;
  request.url = targetPath(url);
}

/** Whether it names several hosts, of which Node shows the first alone (RFC 9112, section 3.2). */
export function hasSeveralHosts({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): boolean {
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts > 1;
}

/** Whether it names none, as it has to since HTTP/1.1 (RFC 9112, section 3.2), the whole address or not. */
export function lacksHost({ headers, httpVersion }: Pick<IncomingMessage, 'headers' | 'httpVersion'>): boolean {
  return httpVersion === '1.1' && headers.host === undefined;
}
