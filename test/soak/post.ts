import { Agent, request } from 'node:http';

export interface Post {
  readonly headers: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body: string;
  readonly signal: AbortSignal;
}

/** Connections are kept, as by a proxy that stands before the replicas, and let go long before petql does that. Cheaper than `fetch`, and it never tries again. */
const agent = new Agent({ keepAlive: true, maxSockets: 200, timeout: 15_000 });

/** Rejects where the connection breaks before the whole answer is there. */
export function post(
  url: string,
  { headers, body, signal }: Post,
): Promise<{ readonly httpStatus: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: 'POST',
      agent,
      signal,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
    });
    sent.once('error', reject);
    sent.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () => {
        resolve({ httpStatus: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() });
      });
    });
    sent.end(body);
  });
}
