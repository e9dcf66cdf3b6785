/**
 * The image's health check: exits with 0 where petql answers `/health/live`. It asks the kernel where the processes of the container
 * listen, since a flag, a variable, an entrypoint of others or a free port may have chosen the address.
 */
import { once } from 'node:events';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { endianness } from 'node:os';
import { HEALTH_TIMEOUT_MS } from '../common/times.ts';

interface Address {
  readonly host: string;
  readonly port: number;
}

const LISTENS = '0A';

const isHealthy = Promise.any(addressesOf(openSockets()).map(askLive));
process.exit(
  await isHealthy.then(
    () => 0,
    () => 1,
  ),
);

/** Returns the numbers of the sockets that processes of this user have open. */
function openSockets(): ReadonlySet<string> {
  const processes = attempt(() => readdirSync('/proc'), []).filter((name) => /^\d+$/.test(name));
  const links = processes.flatMap((id) => {
    const files = attempt(() => readdirSync(`/proc/${id}/fd`), []);
    return files.map((file) => attempt(() => readlinkSync(`/proc/${id}/fd/${file}`), ''));
  });
  return new Set(links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []));
}

/** Returns where these sockets listen (proc_net_tcp(5)). */
function addressesOf(sockets: ReadonlySet<string>): Address[] {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => attempt(() => readFileSync(file, 'utf8'), ''));
  const rows = tables.flatMap((table) => table.split('\n'));
  return rows.flatMap((row) => {
    const [, local = '', , state, , , , , , socket = ''] = row.trim().split(/\s+/);
    const [host = '', port = ''] = local.split(':');
    return state === LISTENS && sockets.has(socket) ? { host: hostOf(host), port: Number.parseInt(port, 16) } : [];
  });
}

/** Returns an address that is written as words of 32 bits, each in the order of this machine. */
function hostOf(hex: string): string {
  // It listens on all addresses.
  if (/^0+$/.test(hex)) return '127.0.0.1';
  const bytes = Buffer.from(hex, 'hex');
  if (endianness() === 'LE') bytes.swap32();
  if (bytes.length === 4) return bytes.join('.');
  return (bytes.toString('hex').match(/.{4}/g) ?? []).join(':');
}

/** Rejects unless it answers that it lives. */
async function askLive({ host, port }: Address): Promise<void> {
  const request = get({ host, port, path: '/health/live', headers: { host: 'localhost' }, timeout: HEALTH_TIMEOUT_MS });
  request.once('timeout', () => request.destroy());
  const [{ statusCode }] = (await once(request, 'response')) as [IncomingMessage];
  if (statusCode !== 200) throw new Error(`expected the status 200, got ${statusCode}`);
}

/** Reads of /proc fail for processes of other users, and for those that have just ended. */
function attempt<Found>(read: () => Found, otherwise: Found): Found {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
