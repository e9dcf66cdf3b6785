const PARAMETERS: ReadonlySet<string> = new Set(['db', 'family', 'keyPrefix']);
/** User and password of the URL are those of Redis. */
const SENTINEL_PARAMETERS: ReadonlySet<string> = new Set([...PARAMETERS, 'sentinelPassword', 'sentinelUsername']);

/**
 * Reads the URL of a Redis, or of several nodes of a Redis Cluster with commas between them, or of Sentinels, which becomes one
 * for each; undefined where one is wrong. A comma in a password is none of these.
 */
export function redisUrls(text: string): readonly [URL, ...URL[]] | undefined {
  const [first, ...others] = separateUrls(text).map((url) => URL.parse(url));
  if (!first || !isRedis(first)) return undefined;
  const nodes = others.filter((url) => url !== null);
  const isAlike = nodes.length === others.length && nodes.every((node) => accessOf(node) === accessOf(first));
  // A Cluster has one database.
  if (!isAlike || (nodes.length > 0 && !isSentinel(first) && databaseOf(first) > 0)) return undefined;
  return [first, ...nodes];
}

/** Whether the URL leads to a Sentinel, which names the master that its path names. */
export function isSentinel({ protocol }: URL): boolean {
  return /^rediss?\+sentinel:$/.test(protocol);
}

function separateUrls(text: string): string[] {
  const [, before, hosts, after] = /^(rediss?\+sentinel:\/\/(?:[^/?#]*@)?)([^/?#@]+)(.*)$/s.exec(text) ?? [];
  if (hosts === undefined) return text.split(/\s*,\s*(?=rediss?:)/);
  return hosts.split(',').map((host) => `${before}${host.trim()}${after}`);
}

function isRedis(url: URL): boolean {
  const { protocol, pathname, searchParams, username, password, hash } = url;
  const isDatabase = /^\d*$/.test(searchParams.get('db') ?? '');
  const isPath = isSentinel(url)
    ? /^\/[\w.-]+$/.test(pathname)
    : /^rediss?:$/.test(protocol) && /^\/?\d*$/.test(pathname);
  // ioredis takes each parameter as one of its options, and another name than a number for database 0.
  const known = isSentinel(url) ? SENTINEL_PARAMETERS : PARAMETERS;
  const isKnown = [...searchParams.keys()].every((name) => known.has(name));
  return isPath && isDatabase && isKnown && hash === '' && isDecodable(username + password);
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
