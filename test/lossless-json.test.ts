import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bareNumber, parseLosslessJson } from '../src/lossless-json.ts';

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

describe('parseLosslessJson', () => {
  test.for([
    ['0', 0],
    ['-1', -1],
    ['9007199254740991', 9007199254740991],
    ['-9007199254740991', -9007199254740991],
    ['9007199254740992', 9007199254740992n],
    ['9007199254740993', 9007199254740993n],
    ['-9007199254740993', -9007199254740993n],
    ['9223372036854775807', 9223372036854775807n],
    ['-9223372036854775808', -9223372036854775808n],
  ] as const)('reads %s as %s', ([text, value]) => {
    expect(parseLosslessJson(text)).toBe(value);
  });

  test.for([
    ['1.5', 1.5],
    ['-0', -0],
    ['1e3', 1000],
    ['1e20', 1e20],
    ['1E+20', 1e20],
    ['9007199254740993.0', 9007199254740992],
    ['123456789012345678901234567890', 1.2345678901234568e29],
    ['1e400', Infinity],
    ['"9007199254740993"', '9007199254740993'],
    ['true', true],
    ['null', null],
  ] as const)('reads %s as JSON.parse does: only plain digits as long as an int64 are kept exact', ([text, value]) => {
    expect(parseLosslessJson(text)).toBe(value);
  });

  test.for([
    '4503599627370497.6',
    '4503599627370.00001',
    '1.00000000000000000001',
    '0.99999999999999999999',
    '45035996273704976e-1',
    '9007199254740992.6',
  ])('reads %s as no number, since a double would make an integer of it', (text) => {
    expect(Number.isInteger(JSON.parse(text))).toBe(true);
    expect(parseLosslessJson(text)).toBeNaN();
  });

  test.for(['1.0000000000000000000', '1.2340000000000000000e3', '100000000000000000e-2', '0.00000000000000000000'])(
    'reads %s as the integer that it is',
    (text) => {
      expect(parseLosslessJson(text)).toBe(JSON.parse(text));
    },
  );

  test('looks at no more values than it may, whatever texts hold', () => {
    const text = `[9007199254740993,"${','.repeat(500)}"${',1'.repeat(97)}]`;
    expect(parseLosslessJson(text, 100)).toHaveLength(99);
    expect(() => parseLosslessJson(text, 99)).toThrow('at most 99 values');
    expect(parseLosslessJson(text.replace('9007199254740993', '1'), 9)).toHaveLength(99);
  });

  test('keeps every digit of any int64, wherever it stands', () => {
    fc.assert(
      fc.property(int64, int64, (first, second) => {
        const parsed: any = parseLosslessJson(
          `{"pets":[{"id":${first}},{"id":${second},"id2":${first}}],"id":${second}}`,
        );
        const ids = [parsed.pets[0].id, parsed.pets[1].id, parsed.pets[1].id2, parsed.id];
        expect(ids.map(BigInt)).toEqual([first, second, first, second]);
      }),
    );
  });

  test('reads an int64 as a number when a double is exact, and as a bigint otherwise', () => {
    fc.assert(
      fc.property(fc.oneof(int64, fc.maxSafeInteger().map(BigInt)), (value) => {
        const exact = Number.isSafeInteger(Number(value));
        expect(parseLosslessJson(String(value))).toBe(exact ? Number(value) : value);
      }),
    );
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

  test('takes the last of several values for one key, with its own digits', () => {
    expect(parseLosslessJson('{"id":9007199254740993,"id":9007199254740995}')).toEqual({ id: 9007199254740995n });
  });

  test.for(['', '{', '[1,]', '01', "{'a':1}", '1n', 'undefined', '9007199254740993 9'])(
    'throws a SyntaxError for %j, which is no JSON',
    (text) => {
      expect(() => parseLosslessJson(text)).toThrow(SyntaxError);
    },
  );
});

describe('bareNumber', () => {
  test('is a number with exactly these digits in JSON', () => {
    fc.assert(
      fc.property(int64, (value) => {
        expect(JSON.stringify({ id: bareNumber(String(value)) })).toBe(`{"id":${value}}`);
      }),
    );
  });

  test('is read back with every digit', () => {
    fc.assert(
      fc.property(int64, (value) => {
        const parsed: any = parseLosslessJson(JSON.stringify([bareNumber(String(value))]));
        expect(BigInt(parsed[0])).toBe(value);
      }),
    );
  });

  test.for(['', 'abc', '007', '+1', '1 ', '1,2', '{}', '[1]'])('throws a SyntaxError for %j', (digits) => {
    expect(() => bareNumber(digits)).toThrow(SyntaxError);
  });
});
