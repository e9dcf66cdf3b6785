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

function hostName(address: string): string {
  if (address === '0.0.0.0' || address === '::') return 'localhost';
  return address.includes(':') ? `[${address}]` : address;
}
