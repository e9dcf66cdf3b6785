/** A longer path is cut in the log. */
const MAX_PATH_LENGTH = 200;

export function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status);
}

/**
 * Says for the log where a redirect points, by its path alone, and what to change.
 *
 * @param calledUrl the URL of the call.
 * @param location the `Location` of the response.
 */
export function redirectProblem(calledUrl: string, location: string | string[] | undefined): string {
  const [target = ''] = [location ?? []].flat();
  const to = target === '' ? null : URL.parse(target, calledUrl);
  if (!to) return 'a redirect, which petql does not follow: the base URL needs a change';

  const from = new URL(calledUrl);
  const [path = ''] = to.pathname.split(';', 1);
  const where = [
    ...(to.protocol === from.protocol ? [] : [to.protocol.slice(0, -1)]),
    ...(to.hostname === from.hostname ? [] : ['another host']),
    `the path ${path.slice(0, MAX_PATH_LENGTH)}`,
  ];
  return `a redirect to ${where.join(', ')}, which petql does not follow: ${adviceOn(from, to)}`;
}

function adviceOn(from: URL, to: URL): string {
  const isSlashAlone = from.pathname !== to.pathname && withoutSlash(from.pathname) === withoutSlash(to.pathname);
  if (isSlashAlone) return 'no base URL helps, the pet API has to serve its paths without a slash at the end';

  const isSameRoute = withoutSlash(to.pathname).endsWith(operationOf(from.pathname));
  if (isSameRoute) return 'the base URL needs a change';
  return 'the base URL needs a change, or something before the pet API, such as a login, stopped the call';
}

/** Returns the part behind the base path: `/pets`, or `/pets/7`. */
function operationOf(path: string): string {
  return /\/pets(?:\/[^/]*)?$/.exec(path)?.[0] ?? path;
}

function withoutSlash(path: string): string {
  return path.replace(/\/+$/, '');
}
