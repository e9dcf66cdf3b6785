import fc from 'fast-check';
import { messages } from './messages.ts';
import type { Message } from './messages.ts';

/** In place of the true length: lengths that are wrong or missing, and lines that are no headers. */
const wrongLine = fc.constantFrom(
  'Content-Length: 5',
  'Content-Length: 5000',
  'Content-Length: -1',
  'Transfer-Encoding: chunked',
  'Expect: 100-continue',
  'Upgrade: h2c',
  'X-Injected',
  ': 1',
  ' folded',
  '',
);
const wireText = fc.oneof(
  fc.constantFrom('\r\n', '\n', '\r', '\0', ':', ' ', '\r\nX-Injected: 1', '\r\n\r\n', 'HTTP/1.0', '\u00ff'),
  fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
);
const edit = fc.record({ at: fc.nat(400), gone: fc.constantFrom(0, 1, 3), come: wireText });

/** Requests as bytes, one after the other or cut off, with lengths that are true or not, and mistakes in between. */
export const wireBytes: fc.Arbitrary<Buffer> = fc
  .record({
    all: fc.array(messages, { minLength: 1, maxLength: 3 }),
    lines: fc.option(fc.array(wrongLine, { maxLength: 2 }), { freq: 2, nil: undefined }),
    edits: fc.option(fc.array(edit, { maxLength: 3 }), { freq: 2, nil: [] }),
    cut: fc.oneof({ weight: 24, arbitrary: fc.constant(Infinity) }, fc.nat(600)),
  })
  .map(({ all, lines, edits, cut }) => {
    let text = all.map((message) => onTheWire(message, lines)).join('');
    for (const { at, gone, come } of edits) text = text.slice(0, at) + come + text.slice(at + gone);
    return Buffer.from(text.slice(0, cut), 'latin1');
  });

function onTheWire({ method, path, headers, body }: Message, lines = [`Content-Length: ${body.length}`]): string {
  const named = headers.map(([name, text]) => `${name}: ${text}`);
  const head = [`${method} ${path} HTTP/1.1`, ...named, ...lines];
  return `${head.join('\r\n')}\r\n\r\n${body.toString('latin1')}`;
}
