import type { Server } from 'node:http';

/**
 * Returns the origin at which this machine reaches a listening server, such as http://127.0.0.1:4000.
 *
 * @throws Error when it does not listen on a port.
 */
export function httpOrigin(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('expected a server that listens on a port');
  return `http://${hostName(address.address)}:${address.port}`;
}

/** Returns where Node listens. Without a host that is on all addresses of both families, or of IPv4 where the machine has no IPv6. */
export function listenAddress(host: string, port: number): { readonly host?: string; readonly port: number } {
  return host === '::' ? { port } : { host, port };
}

function hostName(address: string): string {
  if (address === '0.0.0.0' || address === '::') return 'localhost';
  return address.includes(':') ? `[${address}]` : address;
}
