import type { IncomingMessage } from 'node:http';

/** What Node has told a client to go on for by then, be there more that it expects besides. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/** Whether it expects what nobody here knows of (RFC 9110, section 10.1.1). Before HTTP/1.1 the header meant nothing. */
export function expectsTheUnknown({ headers, httpVersion }: Pick<IncomingMessage, 'headers' | 'httpVersion'>): boolean {
  return httpVersion === '1.1' && headers.expect !== undefined && !CONTINUE.test(headers.expect);
}
