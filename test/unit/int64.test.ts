import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { int64FromBigInt, parseInt64 } from '../../src/pets/int64.ts';
import { bareNumber, parseLosslessJson } from '../../src/common/lossless-json.ts';

const LOWEST = -(2n ** 63n);
const HIGHEST = 2n ** 63n - 1n;
const int64 = fc.bigInt({ min: LOWEST, max: HIGHEST });
const outOfRange = fc.oneof(
  fc.bigInt({ min: HIGHEST + 1n, max: 2n ** 80n }),
  fc.bigInt({ min: -(2n ** 80n), max: LOWEST - 1n }),
);

describe('parseInt64', () => {
  const NONE = ['', '-', '-0', '+1', '007', '1.0', '1e3', '0x1f', '1_000', '1n', ' 1', '1\n', '١', '１', 'NaN'];

  test.for([...NONE, '9223372036854775808', '-9223372036854775809', '9'.repeat(1_000_000)])('rejects %j', (text) => {
    expect(parseInt64(text)).toBeUndefined();
  });

  test('returns every int64 digit for digit, and nothing out of range', () => {
    fc.assert(
      fc.property(int64, outOfRange, (value, other) => {
        expect([parseInt64(String(value)), int64FromBigInt(value)]).toEqual([String(value), String(value)]);
        expect([parseInt64(String(other)), int64FromBigInt(other)]).toEqual([undefined, undefined]);
      }),
    );
    expect([LOWEST, HIGHEST].map(int64FromBigInt)).toEqual([String(LOWEST), String(HIGHEST)]);
  });

  test('accepts one text for each int64', () => {
    const digits = fc.stringMatching(/^[0-9+.eEnx_ \n-]{0,22}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), digits), (text) => {
        const read = parseInt64(text);
        expect(read === undefined ? text : String(BigInt(read))).toBe(text);
      }),
    );
  });
});

describe('parseLosslessJson', () => {
  test.for([
    ['9007199254740991', 9007199254740991],
    ['9007199254740992', 9007199254740992n],
    ['-9007199254740993', -9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
    ['1.5', 1.5],
    ['-0', -0],
    ['1E+20', 1e20],
    ['9007199254740993.0', 9007199254740993n],
    ['1e16', 10n ** 16n],
    ['-9.223372036854775808E18', -(2n ** 63n)],
    ['9007199254740993000e-3', 9007199254740993n],
    ['1e19', 1e19],
    ['123456789012345678901234567890', 1.2345678901234568e29],
    ['1e400', Infinity],
    ['"9007199254740993"', '9007199254740993'],
    // A double would make an integer of these.
    ['4503599627370497.6', Number.NaN],
    ['1.00000000000000000001', Number.NaN],
    ['45035996273704976e-1', Number.NaN],
    ['1e-400', Number.NaN],
    ['-0.1E-330', Number.NaN],
    // And these are integers.
    ['1e3', 1000],
    ['0e-400', 0],
    ['-0.0', -0],
    ['1.0000000000000000000', 1],
    ['1.2340000000000000000e3', 1234],
    ['100000000000000000e-2', 1e15],
  ] as const)('reads %s as %s', ([text, value]) => {
    expect(parseLosslessJson(text)).toBe(value);
  });

  test('keeps every digit of any int64, wherever it stands', () => {
    fc.assert(
      fc.property(int64, int64, (first, second) => {
        const parsed: any = parseLosslessJson(`{"pets":[{"id":${first}},{"id":${second}}],"id":${second}}`);
        expect([parsed.pets[0].id, parsed.pets[1].id, parsed.id].map(BigInt)).toEqual([first, second, second]);
        const written = JSON.stringify([bareNumber(String(first))]);
        expect(written).toBe(`[${first}]`);
      }),
    );
    expect(parseLosslessJson('{"id":9007199254740993,"id":9007199254740995}')).toEqual({ id: 9007199254740995n });
  });

  test.for([
    ['zeros in a fraction', `0.${'0'.repeat(500_000)}1`],
    ['zeros around a digit', `1${'0'.repeat(250_000)}.${'0'.repeat(250_000)}1`],
    ['nines', '9'.repeat(500_000)],
    ['digits of an exponent', `1e-${'0'.repeat(250_000)}${'9'.repeat(250_000)}`],
  ])('takes no longer for half a million %s than for other text', ([, number]) => {
    const startedMs = performance.now();
    parseLosslessJson(`[${number},9007199254740993]`);
    // A pattern that starts again at each digit took minutes.
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  test('reads any other JSON as JSON.parse does', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const rounded = JSON.stringify(parseLosslessJson(text), (_key, value: unknown) =>
          typeof value === 'bigint' ? Number(value) : value,
        );
        expect(rounded).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  test.for(['', '{', '[1,]', '01', "{'a':1}", '1n', 'undefined', '9007199254740993 9'])('throws for %j', (text) => {
    expect(() => parseLosslessJson(text)).toThrow(SyntaxError);
  });

  test.for(['', 'abc', '007', '+1', '1 ', '1,2', '{}'])('bareNumber throws for %j', (digits) => {
    expect(() => bareNumber(digits)).toThrow(SyntaxError);
  });
});
