const PARAMETERS: ReadonlySet<string> = new Set(['db', 'family', 'keyPrefix']);

/**
 * Reads the URL of a Redis, or of several nodes of a Redis Cluster with commas between them; undefined where one is wrong. A
 * comma in a password is none of these.
 */
export function redisUrls(text: string): readonly [URL, ...URL[]] | undefined {
  const [first, ...others] = text.split(/\s*,\s*(?=rediss?:)/).map((url) => URL.parse(url));
  if (!first || !isRedis(first)) return undefined;
  const nodes = others.filter((url) => url !== null);
  const isAlike = nodes.length === others.length && nodes.every((node) => accessOf(node) === accessOf(first));
  // A Cluster has one database.
  if (!isAlike || (nodes.length > 0 && databaseOf(first) > 0)) return undefined;
  return [first, ...nodes];
}

function isRedis({ protocol, pathname, searchParams, username, password, hash }: URL): boolean {
  const isDatabase = /^\/?\d*$/.test(pathname) && /^\d*$/.test(searchParams.get('db') ?? '');
  // ioredis takes each parameter as one of its options, and another name than a number for database 0.
  const isKnown = [...searchParams.keys()].every((name) => PARAMETERS.has(name));
  return /^rediss?:$/.test(protocol) && isDatabase && isKnown && hash === '' && isDecodable(username + password);
}

/** All but the address, which the nodes of a Cluster have in common. */
function accessOf({ protocol, username, password, pathname, search }: URL): string {
  return [protocol, username, password, pathname, search].join(' ');
}

function databaseOf({ pathname, searchParams }: URL): number {
  return Number(pathname.slice(1)) || Number(searchParams.get('db'));
}

/** Whether the text has no percent sign but those of percent-encoding. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
