import { hash } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';
import type { HttpRequest } from './http/http-message.ts';

/**
 * Returns who a request comes from, for the fair share of visitors: what `execute` names, else the last entry of the header, which
 * the nearest proxy wrote. With the setting, all requests without it are one visitor.
 *
 * @param header its name in lower case; undefined without the setting.
 */
export function visitorOf({ inProcess, headers }: HttpRequest, header: string | undefined): string | undefined {
  if (inProcess?.visitor !== undefined) return hashOf(inProcess.visitor);
  if (header === undefined) return undefined;
  const entries = (inProcess ? undefined : headers[header]) ?? '';
  const last = header === 'forwarded' ? forwardedFor(entries) : entries.slice(entries.lastIndexOf(',') + 1).trim();
  return hashOf(addressOf(last));
}

/** What commas part, and what semicolons do: neither counts between quotes, where a client may have written it. */
const ELEMENT = /(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g;
const PARAMETER = /(?:[^;"]|"(?:\\.|[^"\\])*"?)+/g;

/** Returns the client of the last element of `Forwarded` (RFC 7239, section 4), which may be quoted; empty where it names none. */
function forwardedFor(header: string): string {
  const parameters = header.match(ELEMENT)?.at(-1)?.match(PARAMETER) ?? [];
  const client = parameters
    .map((text) => /^\s*for\s*=(.*)$/i.exec(text)?.[1]?.trim())
    .find((value) => value !== undefined);
  return client?.startsWith('"') ? client.replaceAll(/^"|"$/g, '').replaceAll(/\\(.)/g, '$1') : (client ?? '');
}

/** As proxies write it: alone, with a port (RFC 7239 has names of ports too), or in brackets. */
const ADDRESS = /^(?:\[([^\]]+)\](?::[\w.-]+)?|([\d.]+):[\w.-]+)$/;

/** Returns an IPv4 address, the network of an IPv6 address, or any other text as it is. */
function addressOf(entry: string): string {
  const [, bracketed, v4] = ADDRESS.exec(entry) ?? [];
  const address = (bracketed ?? v4 ?? entry).replace(/%.*$/, '');
  if (isIPv6(address)) return networkOf(address);
  return isIPv4(address) ? address : entry;
}

/** Returns the first 64 bits of an IPv6 address, of which a host has all others; or the IPv4 address that it holds. */
function networkOf(address: string): string {
  // The URL has it in lower case, in hexadecimal alone and without leading zeros.
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const [first, last] = [groupsOf(head), groupsOf(tail)] as const;
  const groups = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => '0'), ...last];
  const isMapped = /^(?:0 ){5}ffff /.test(groups.join(' '));
  if (!isMapped) return `${groups.slice(0, 4).join(':')}::/64`;
  const bytes = groups.slice(6).map((group) => Number.parseInt(group, 16));
  return bytes.flatMap((pair) => [pair >> 8, pair & 0xff]).join('.');
}

function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':');
}

/** The value may be personal, and as long as a header. */
function hashOf(value: string): string {
  return hash('sha256', value, 'base64url');
}
