import type { ServerResponse } from 'node:http';
import type { OperationAnswer } from './operations.ts';

/** What goes wrong with one call, for tests of whoever calls. Every part can be combined with the others. */
export interface Fault {
  /** The call stands still for so long, after it was counted and carried out. */
  readonly delayMs?: number;
  /** The operation is not carried out. Without this, a creation whose answer is spoilt has been stored. */
  readonly refused?: boolean;
  /** Another status than the true one. */
  readonly status?: number;
  /** Another body than the true one: HTML, half a JSON, a lie. */
  readonly body?: string | Buffer;
  /** Headers to set, or with null to leave out. */
  readonly headers?: Readonly<Record<string, string | null>>;
  /** The connection is cut after so many bytes of the body. */
  readonly cutAfterBytes?: number;
  /** The connection is reset instead of an answer. */
  readonly reset?: boolean;
}

/** Sends an answer, spoilt as the fault says. */
export function sendAnswer(response: ServerResponse, answer: OperationAnswer, fault: Fault = {}): void {
  if (fault.reset) {
    response.socket?.resetAndDestroy();
    return;
  }
  response.sendDate = false;
  const given = fault.body ?? answer.body;
  const body = typeof given === 'string' ? Buffer.from(given) : given;
  const headers: Record<string, string | number | null> = {
    'content-type': 'application/json',
    'content-length': body.length,
    ...answer.headers,
    ...fault.headers,
  };
  for (const [name, value] of Object.entries(headers)) {
    if (value === null) response.removeHeader(name);
    else response.setHeader(name, value);
  }
  response.writeHead(fault.status ?? answer.status);
  if (fault.cutAfterBytes === undefined) {
    response.end(body);
  } else {
    response.write(body.subarray(0, fault.cutAfterBytes), () => response.socket?.destroy());
  }
}
