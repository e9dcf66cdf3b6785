import { proxyUrl } from '../settings/setting-shapes.ts';

/**
 * Returns the proxy for the calls to the pet API by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or undefined. A variable in lower case wins,
 * as in curl.
 *
 * @throws Error that names the variable whose URL is wrong, and never repeats it.
 */
export function environmentProxy(petApiUrl: URL, env: NodeJS.ProcessEnv): URL | undefined {
  const variable = petApiUrl.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const source = [variable.toLowerCase(), variable].find((name) => env[name]);
  if (!source || isExcepted(petApiUrl, env['no_proxy'] || env['NO_PROXY'] || '')) return undefined;

  const { data, error } = proxyUrl.safeParse(env[source]);
  if (error) throw new Error(`${source} ${error.issues[0]?.message}`);
  return data;
}

/** An entry of NO_PROXY is a host with the hosts below it, `*.` for those alone, or `*`; each may have a port. As undici reads it. */
function isExcepted({ protocol, hostname, port }: URL, noProxy: string): boolean {
  const host = withoutBrackets(hostname).replace(/\.$/, '');
  const hostPort = port || (protocol === 'https:' ? '443' : '80');

  return noProxy.split(/[\s,]+/).some((entry) => {
    const [, beforePort = entry, entryPort = hostPort] = /^(\[.+\]|[^:]+):(\d+)$/.exec(entry) ?? [];
    const name = withoutBrackets(beforePort.toLowerCase()).replace(/\.$/, '');
    if (name === '' || entryPort !== hostPort) return false;

    const parent = name.replace(/^\*?\./, '');
    const isHost = host === parent && !name.startsWith('*');
    return name === '*' || isHost || host.endsWith(`.${parent}`);
  });
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[(.+)\]$/, '$1');
}
