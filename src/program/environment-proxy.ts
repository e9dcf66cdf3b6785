import { BlockList, isIP } from 'node:net';
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

/**
 * An entry of NO_PROXY is a host with the hosts below it, `*.` for those alone, or `*`; each may have a port. As undici reads it.
 * Or it is a range of addresses, such as `10.0.0.0/8`, as curl and Go read it.
 */
function isExcepted({ protocol, hostname, port }: URL, noProxy: string): boolean {
  const host = withoutBrackets(hostname).replace(/\.$/, '');
  const hostPort = port || (protocol === 'https:' ? '443' : '80');

  return noProxy.split(/[\s,]+/).some((entry) => {
    if (entry.includes('/')) return isWithin(host, entry);
    const [, beforePort = entry, entryPort = hostPort] = /^(\[.+\]|[^:]+):(\d+)$/.exec(entry) ?? [];
    const name = withoutBrackets(beforePort.toLowerCase()).replace(/\.$/, '');
    if (name === '' || entryPort !== hostPort) return false;

    const parent = name.replace(/^\*?\./, '');
    const isHost = host === parent && !name.startsWith('*');
    return name === '*' || isHost || host.endsWith(`.${parent}`);
  });
}

/** Whether a host is an address of the range; false for any name, and for what is no range. */
function isWithin(host: string, range: string): boolean {
  const [start = '', bits = ''] = range.split('/', 2).map(withoutBrackets);
  const isOfIpv4 = isIP(start) === 4;
  const isRange = isIP(start) !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (isOfIpv4 ? 32 : 128);
  if (!isRange || isIP(host) !== isIP(start)) return false;

  const family = isOfIpv4 ? 'ipv4' : 'ipv6';
  const addresses = new BlockList();
  addresses.addSubnet(start, Number(bits), family);
  return addresses.check(host, family);
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[(.+)\]$/, '$1');
}
