import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { int64FromBigInt, parseInt64 } from '../src/int64.ts';

const LOWEST = -(2n ** 63n);
const HIGHEST = 2n ** 63n - 1n;

const int64 = fc.bigInt({ min: LOWEST, max: HIGHEST });
const outOfRange = fc.oneof(
  fc.bigInt({ min: HIGHEST + 1n, max: 2n ** 80n }),
  fc.bigInt({ min: -(2n ** 80n), max: LOWEST - 1n }),
);

describe('parseInt64', () => {
  test.for(['0', '1', '-1', '9007199254740993', '9223372036854775807', '-9223372036854775808'])(
    'reads %s',
    (digits) => {
      expect(parseInt64(digits)).toBe(digits);
    },
  );

  test.for([
    '',
    '-',
    '-0',
    '+1',
    '007',
    '-01',
    '1.0',
    '1e3',
    '0x1f',
    '0b1',
    '1_000',
    '1n',
    ' 1',
    '1 ',
    '1\n',
    '١',
    '１',
    'NaN',
    'Infinity',
    '9223372036854775808',
    '-9223372036854775809',
    '99999999999999999999',
    '9'.repeat(1_000_000),
  ])('reads no int64 in %j', (text) => {
    expect(parseInt64(text)).toBeUndefined();
  });

  test('gives every int64 back, digit for digit', () => {
    fc.assert(
      fc.property(int64, (value) => {
        expect(parseInt64(String(value))).toBe(String(value));
      }),
    );
  });

  test('reads no whole number out of range', () => {
    fc.assert(
      fc.property(outOfRange, (value) => {
        expect(parseInt64(String(value))).toBeUndefined();
      }),
    );
  });

  test('reads one text for each int64 alone: whatever it takes, it gives back unchanged', () => {
    const digits = fc.stringMatching(/^[0-9+.eEnx_ \n-]{0,22}$/);
    fc.assert(
      fc.property(fc.oneof(fc.string(), digits), (text) => {
        const read = parseInt64(text);
        expect([undefined, text]).toContain(read);
        expect(read === undefined ? undefined : String(BigInt(read))).toBe(read);
      }),
    );
  });
});

describe('int64FromBigInt', () => {
  test('gives the digits of every int64', () => {
    fc.assert(
      fc.property(int64, (value) => {
        expect(int64FromBigInt(value)).toBe(String(value));
      }),
    );
  });

  test('gives nothing for what is out of range', () => {
    expect([HIGHEST + 1n, LOWEST - 1n].map(int64FromBigInt)).toEqual([undefined, undefined]);
    fc.assert(
      fc.property(outOfRange, (value) => {
        expect(int64FromBigInt(value)).toBeUndefined();
      }),
    );
  });
});
