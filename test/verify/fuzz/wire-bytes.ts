import fc from 'fast-check';
import { mostly } from './documents.ts';
import { messages } from './messages.ts';
import type { Message } from './messages.ts';

const FRAMINGS = ['short', 'long', 'both', 'twice', 'negative', 'chunked', 'bad chunks', 'none'] as const;
const wireText = fc.oneof(
  fc.constantFrom('\r\n', '\n', '\r', '\0', ':', ' ', '\r\nX-Injected: 1', '\r\n\r\n', 'HTTP/1.0', '\u00ff'),
  fc.constantFrom('Transfer-Encoding: chunked\r\n', 'Content-Length: 5\r\n', 'Expect: 100-continue\r\n'),
  fc.constant('Upgrade: h2c\r\nConnection: Upgrade\r\n'),
  fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
);

/** Requests as bytes, one after the other or cut off, with lengths that are true or not, and mistakes in between. */
export const wireBytes: fc.Arbitrary<Buffer> = fc
  .record({
    all: fc.array(messages, { minLength: 1, maxLength: 3 }),
    framing: mostly<string>(fc.constant('true'), 1, fc.constantFrom(...FRAMINGS)),
    edits: mostly<readonly { at: number; gone: number; come: string }[]>(
      fc.constant([]),
      2,
      fc.array(fc.record({ at: fc.nat(400), gone: fc.constantFrom(0, 1, 3), come: wireText }), { maxLength: 3 }),
    ),
    cut: mostly(fc.constant(Infinity), 24, fc.nat(600)),
  })
  .map(({ all, framing, edits, cut }) => {
    let bytes = Buffer.concat(all.map((message) => onTheWire(message, framing)));
    for (const { at, gone, come } of edits) {
      const place = at % (bytes.length + 1);
      bytes = Buffer.concat([bytes.subarray(0, place), Buffer.from(come, 'latin1'), bytes.subarray(place + gone)]);
    }
    return bytes.subarray(0, cut);
  });

function onTheWire({ method, path, headers, body }: Message, framing: string): Buffer {
  const { length } = body;
  const isChunked = ['both', 'bad chunks', 'chunked'].includes(framing);
  const lengths: Record<string, readonly number[]> = {
    true: [length],
    both: [length],
    short: [Math.floor(length / 2)],
    long: [length + 10],
    negative: [-1],
    twice: [length, length + 1],
  };
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...headers.map(([name, text]) => `${name}: ${text}`),
    ...(lengths[framing] ?? []).map((count) => `Content-Length: ${count}`),
    ...(isChunked ? ['Transfer-Encoding: chunked'] : []),
  ];
  const size = framing === 'bad chunks' ? 'zz' : length.toString(16);
  const chunk = Buffer.concat([Buffer.from(`${size}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')]);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), isChunked ? chunk : body]);
}
