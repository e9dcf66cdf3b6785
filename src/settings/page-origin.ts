/** A scheme and a host with its port, where only files have no host. Apps and extensions have schemes of their own. */
const ORIGIN = /^(?:file:\/\/|[a-z][a-z\d+.-]*:\/\/[^/?#@*\s]+)\/?$/i;

/**
 * Returns the origin of a page, an app or an extension in one spelling: in lower case, without a default port, with other letters
 * than ASCII in Punycode. Undefined for what is no origin. `null` is the one of sandboxed frames and of some local files
 * (the Fetch standard, "`Origin` header").
 */
export function pageOrigin(text: string): string | undefined {
  if (text === 'null') return text;
  const url = ORIGIN.test(text) ? URL.parse(text) : undefined;
  if (!url) return undefined;
  const { origin, protocol, host } = url;
  // The URL standard gives an origin to the schemes of the web alone.
  return origin === 'null' ? `${protocol}//${host.toLowerCase()}` : origin;
}
