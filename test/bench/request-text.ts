import type { Workload } from './workloads.ts';

/** A request as it goes over the wire, of the caller with this key. */
export function graphqlRequest(workload: Pick<Workload, 'query' | 'uncached' | 'variables'>, key: string): Buffer {
  const { query, variables, uncached } = workload;
  const body = JSON.stringify({ query, ...(variables ? { variables } : {}) });
  const lines = [
    'POST /graphql HTTP/1.1',
    'host: 127.0.0.1',
    `authorization: Bearer ${key}`,
    'accept: application/json',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    ...(uncached ? ['cache-control: max-age=0'] : []),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`);
}

/** The REST call, as the pass-throughs take it. */
export function restRequest(path: string, key: string): Buffer {
  return Buffer.from(`GET /v1${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n\r\n`);
}
