import { connect } from 'node:net';

/** Sends bytes as they are, since `fetch` joins and cleans headers; returns what comes until the connection ends. */
export async function exchange(bytes: Buffer | string, endpoint: string): Promise<string> {
  const { hostname, port } = new URL(endpoint);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  return Buffer.concat(await socket.toArray()).toString();
}

/** A request on the wire, whose connection ends with the response. */
export interface WireRequest {
  /** Default POST. */
  readonly method?: string;
  /** Default `/graphql`. */
  readonly target?: string;
  /** Whole lines. Beside them go Host, Connection, and with a body its length and its type, unless they are among them. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer | undefined;
}

/** Returns the bytes of a request. */
export function wireRequest({ method = 'POST', target = '/graphql', headers = [], body }: WireRequest): Buffer {
  const lines = [...headers];
  const addDefault = (line: string) => {
    const [name = ''] = line.split(':');
    if (!headers.some((given) => given.toLowerCase().startsWith(`${name.toLowerCase()}:`))) lines.unshift(line);
  };
  if (body !== undefined) addDefault('Content-Type: application/json');
  if (body !== undefined) addDefault(`Content-Length: ${Buffer.byteLength(body)}`);
  addDefault('Connection: close');
  addDefault('Host: petql');
  return Buffer.concat([
    Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`),
    Buffer.from(body ?? ''),
  ]);
}
