import fc from 'fast-check';

/** Alternatives of each name, which ` | ` separates, or ` |` at the end of a line; `<name>` stands for another one, and `9* ` is a weight. */
export type Rules = Readonly<Record<string, string>>;

/** So many choices within choices; then each name has its first alternative, which must come to an end. */
const MAX_DEPTH = 14;

/** Texts of a grammar, by the name that they begin with. They shrink towards the first alternatives. */
export function grammar(
  rules: Rules,
  terminals: Readonly<Record<string, fc.Arbitrary<string>>>,
): Record<string, fc.Arbitrary<string>> {
  const depthIdentifier = fc.createDepthIdentifier();
  return fc.letrec<Record<string, string>>((tie) => {
    const alternative = (text: string) => {
      const [, weight = '1', rest = ''] = /^(?:(\d+)\* )?(.*)$/s.exec(text) ?? [];
      const parts = rest.split(/<(\w+)>/).map((part, index) => (index % 2 === 1 ? tie(part) : fc.constant(part)));
      return { weight: Number(weight), arbitrary: fc.tuple(...parts).map((all) => all.join('')) };
    };
    const options = { depthIdentifier, maxDepth: MAX_DEPTH, depthSize: 'max', withCrossShrink: true } as const;
    const arbitraries = Object.entries(rules).map(
      ([name, texts]) => [name, fc.oneof(options, ...texts.split(/ \|\n {4}| \| /).map(alternative))] as const,
    );
    return { ...Object.fromEntries(arbitraries), ...terminals };
  });
}

/** A text with some of its characters gone and others in their place. */
export function mutated(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const come = fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 6 }));
  const edit = fc.record({ at: fc.nat(10_000), gone: fc.constantFrom(0, 0, 1, 2, 20), come });
  return fc.tuple(texts, fc.array(edit, { minLength: 1, maxLength: 4 })).map(([text, edits]) =>
    edits.reduce((result, edited) => {
      const at = edited.at % Math.max(1, result.length);
      return result.slice(0, at) + edited.come + result.slice(at + edited.gone);
    }, text),
  );
}

/** Texts that readers of text stumble over, and names that every JavaScript object has. */
const NASTY = ['\u0000', '\ufeff', '\ud800', '\udfff', '\u202e', '\u2028', '\u{1f600}', 'e\u0301', '\u0085', '\r\n'];
const TEXTS = '" """ \\ \\u{110000} \\ud83d `${1}` {{7*7}} <script> ../../etc/passwd # __proto__ toString'.split(' ');
export const nasty = fc.constantFrom(...NASTY, ...TEXTS);
