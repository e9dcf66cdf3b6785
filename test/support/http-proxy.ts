import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** An HTTP proxy, as companies have them: it tunnels what asks for CONNECT, and sends other requests itself. */
export interface HttpProxy extends AsyncDisposable {
  readonly origin: string;
  /** What it was asked for, in order. */
  readonly requests: readonly ProxiedRequest[];
  /** Connections that stand. */
  readonly connections: number;
  /** What goes wrong with each request from now on. */
  setFault: (fault: ProxyFault | undefined) => void;
  /** Resets every connection: to a request that was sent, nobody knows the response. */
  readonly cut: () => void;
}

export interface ProxiedRequest {
  readonly method: string;
  /** The host and port of a tunnel, else a whole URL. */
  readonly target: string;
  /** What the proxy could read of the API key; undefined within a tunnel. */
  readonly authorization: string | undefined;
}

/**
 * `cut`: the connection ends before a response. `cut-tunnel`: the tunnel ends with the first bytes in it, before any request.
 * `hang`: no response comes. A number: the status of a response of its own.
 */
export type ProxyFault = number | 'cut' | 'cut-tunnel' | 'hang';

/** @param credentials which it requires, as `user:password`. */
export async function startHttpProxy(credentials?: string): Promise<HttpProxy> {
  const requests: ProxiedRequest[] = [];
  const sockets = new Set<Socket>();
  let fault: ProxyFault | undefined;

  const server = createServer(forward).on('connect', openTunnel);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket.on('error', () => {}));
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get connections() {
      return sockets.size;
    },
    setFault: (given) => void (fault = given),
    cut,
    async [Symbol.asyncDispose]() {
      cut();
      server.close();
      await once(server, 'close');
    },
  };

  function forward(request: IncomingMessage, response: ServerResponse): void {
    const status = admit(request);
    if (fault === 'cut') request.socket.destroy();
    else if (status === undefined) return;
    else if (status !== 200) response.writeHead(status, { 'proxy-authenticate': 'Basic' }).end();
    else {
      const { method, headers } = request;
      const passed = send(request.url ?? '', { method, headers }, (received) => {
        response.writeHead(received.statusCode ?? 0, received.headers);
        received.pipe(response);
      });
      request.pipe(passed.on('error', () => request.socket.destroy()));
    }
  }

  function openTunnel(request: IncomingMessage, client: Duplex): void {
    const status = admit(request);
    if (fault === 'cut') client.destroy();
    // It still notices that the client ends the connection.
    else if (status === undefined) client.resume().once('end', () => client.end());
    else if (status !== 200) client.end(`HTTP/1.1 ${status} No\r\nproxy-authenticate: Basic\r\n\r\n`);
    else {
      const { hostname, port } = new URL(`http://${request.url}`);
      const upstream = connect(Number(port), hostname, () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n');
        if (fault === 'cut-tunnel') client.once('data', () => client.destroy());
        else upstream.pipe(client).pipe(upstream);
      });
      upstream.on('error', () => {}).once('close', () => client.destroy());
      client.once('close', () => upstream.destroy());
    }
  }

  /** Returns the status of the proxy's own response, 200 for none, and undefined where none comes. */
  function admit({ method = '', url: target = '', headers }: IncomingMessage): number | undefined {
    requests.push({ method, target, authorization: headers.authorization });
    const given = headers['proxy-authorization']?.replace('Basic ', '') ?? '';
    if (credentials && Buffer.from(given, 'base64').toString() !== credentials) return 407;
    if (fault === 'hang') return undefined;
    return typeof fault === 'number' ? fault : 200;
  }
}
