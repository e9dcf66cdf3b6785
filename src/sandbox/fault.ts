import type { ServerResponse } from 'node:http';
import type { OperationResponse } from './operations.ts';

/** What goes wrong with one call, for tests; the parts can be combined. */
export interface Fault {
  /** Delays the response, after the call was counted and run. */
  readonly delayMs?: number;
  /** Whether the operation is not run. Otherwise a pet is stored even where its response is replaced. */
  readonly refused?: boolean;
  /** Replaces the status. */
  readonly status?: number;
  /** Replaces the body. */
  readonly body?: string | Buffer;
  /** Headers to set, or to leave out with null. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** Closes the connection after this many bytes of the body. */
  readonly cutAfterBytes?: number;
  /** Resets the connection instead of a response. */
  readonly reset?: boolean;
}

/** Sends the response with the fault in it. */
export function sendResponse(response: ServerResponse, given: OperationResponse, fault: Fault = {}): void {
  if (fault.reset) return void response.socket?.resetAndDestroy();
  response.sendDate = false;
  const body = Buffer.from(fault.body ?? given.body);
  const headers = {
    'content-type': 'application/json',
    'content-length': body.length,
    ...given.headers,
    ...fault.headers,
  };
  for (const [name, value] of Object.entries(headers)) if (value !== null) response.setHeader(name, value);
  response.writeHead(fault.status ?? given.status);
  if (fault.cutAfterBytes === undefined) response.end(body);
  else response.write(body.subarray(0, fault.cutAfterBytes), () => response.socket?.destroy());
}
