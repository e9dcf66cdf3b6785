import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** A server whose queue of connections is full: a connection to it waits, as on a way that loses packets. */
export interface DeafServer extends AsyncDisposable {
  readonly port: number;
  /** Takes connections from now on, and answers each request with an empty list. */
  readonly listen: () => void;
}

const SERVER = `
  const server = require('node:http').createServer((_request, response) => response.end('[]'));
  server.listen({ port: Number(process.argv[1]), host: process.argv[2], backlog: 1 }, () => process.send(server.address().port));
`;
/** Linux takes one connection more than the backlog, and the others cannot be told apart from it before they wait. */
const FILLING = 8;

/** @param host an address of this machine, of which Linux has all in 127.0.0.0/8. */
export async function startDeafServer(host: string, wanted = 0): Promise<DeafServer> {
  const server = fork('-e', [SERVER, String(wanted), host], { execArgv: [], stdio: 'ignore' });
  const [port] = (await once(server, 'message')) as [number];
  server.kill('SIGSTOP');
  const filling: Socket[] = Array.from({ length: FILLING }, () => connect({ host, port }).on('error', () => {}));
  await once(filling[0] as Socket, 'connect');
  return {
    port,
    listen() {
      for (const socket of filling) socket.destroy();
      server.kill('SIGCONT');
    },
    async [Symbol.asyncDispose]() {
      for (const socket of filling) socket.destroy();
      server.kill('SIGKILL');
      await once(server, 'exit');
    },
  };
}
