import fc from 'fast-check';

/** A text that repeats a part until it is long: what a parser that is not linear is slow at. */
export interface LongText {
  readonly before: string;
  readonly repeated: string;
  readonly after: string;
}

/** Parts of JSON, of GraphQL, of headers and of URLs. */
const PARTS = `
  0 1 9 . e E+ - " \\ \\" \\u0000 { } [ ] , : {"id": "name":"a", [[ true null é $ ( ) ! ... # @a fragment query
  ; = a b A rel=next rel="next" <x>; next q=0.1 */* Bearer bearer max-age=1 no-cache gzip % %20 / // ? & .. \t
`
  .trim()
  .split(/ +|\n/)
  .filter((part) => part !== '')
  .concat(' ', ', ', '\u00a0');
const DIGITS = ['0', '00', '1', '9', '.', 'e', 'E', '-', '+'];

const textOf = (parts: readonly string[]) =>
  fc.record({
    before: fc.array(fc.constantFrom(...parts), { maxLength: 3 }).map((some) => some.join('')),
    repeated: fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 3 }).map((some) => some.join('')),
    after: fc.array(fc.constantFrom(...parts), { maxLength: 2 }).map((some) => some.join('')),
  });
const number = textOf(DIGITS).map(({ before, repeated, after }) => ({
  before: `1${before}`,
  repeated,
  after: `${after}1`,
}));

export const longTexts: fc.Arbitrary<LongText> = fc.oneof(textOf(PARTS), number);

/** Returns the text at this length in bytes, about. */
export function atLength({ before, repeated, after }: LongText, bytes: number): string {
  const count = Math.max(1, Math.floor((bytes - before.length - after.length) / Buffer.byteLength(repeated)));
  return before + repeated.repeat(count) + after;
}
