/** Documents that cost much for their length; each grows with a size. */
export interface CostlyDocument {
  /** About as much as petql accepts: 1,000 tokens, 100 aliases, 64 KiB. */
  readonly maxSize: number;
  /** `$ids` are lists of ids. */
  readonly of: (size: number) => string;
}

export const COSTLY_DOCUMENTS: readonly CostlyDocument[] = [
  // Depth.
  { maxSize: 320, of: (size) => `${'{ pets '.repeat(size)}${'}'.repeat(size)}` },
  { maxSize: 480, of: (size) => `{ pets(limit: ${'['.repeat(size)}${']'.repeat(size)}) { id } }` },
  { maxSize: 300, of: (size) => `{ pets { ${'... { '.repeat(size)} id ${'}'.repeat(size)} } }` },
  // Width.
  { maxSize: 990, of: (size) => `{ pets { ${'id '.repeat(size)} } }` },
  { maxSize: 990, of: (size) => `{ ${times(size, (k) => `x${k}`)} }` },
  { maxSize: 100, of: (size) => `{ ${times(size, () => 'pets { id id id }')} }` },
  { maxSize: 100, of: (size) => `{ ${times(size, (k) => `a${k}: pets { id }`)} }` },
  // The same field again and again, and large results.
  { maxSize: 249, of: (size) => `{ ${times(size, () => 'pets { id }')} }` },
  // The validation of graphql-js before 16.15 and 17.1 compares all of its fields, in pairs, and counts none.
  { maxSize: 95, of: (size) => `{ ${times(10, () => `pets { ${'id '.repeat(size)} }`)} }` },
  { maxSize: 49, of: (size) => `{ ${times(size, (k) => `a${k}: pets(limit: 100) { id name status }`)} }` },
  {
    maxSize: 29,
    of: (size) => `{ ${times(size, (k) => `a${k}: __type(name: "__Type") { fields { name args { name } } }`)} }`,
  },
  { maxSize: 75, of: (size) => `{ ${times(size, (k) => `a${k}: pet(id: "1${k}") { id x name }`)} }` },
  { maxSize: 140, of: (size) => `{ pets ${'@skip(if: false) '.repeat(size)} { id } }` },
  { maxSize: 60, of: (size) => `{ __schema { ${times(size, (k) => `a${k}: types { name fields { name } }`)} } }` },
  {
    maxSize: 3,
    of: (size) => `{ __schema { ${times(size, (k) => `a${k}: types { fields { type { fields { name } } } }`)} } }`,
  },
  // Fragments: a chain, one that doubles at each level, and all in all.
  {
    maxSize: 120,
    of: (size) => `{ ...f0 } ${times(size, (k) => fragment(k, `...f${k + 1}`))} ${fragment(size, 'pets { id }')}`,
  },
  {
    maxSize: 95,
    of: (size) => `{ ...f0 } ${times(size, (k) => fragment(k, `...f${(k + 1) % size} ...f${(k * 7) % size}`))}`,
  },
  {
    maxSize: 18,
    of: (size) =>
      `{ ...f0 } ${times(size, (k) =>
        fragment(
          k,
          times(size, (j) => `...f${j}`),
        ),
      )}`,
  },
  // Operations, variables and values.
  { maxSize: 199, of: (size) => times(size, (k) => `query q${k} { __typename }`) },
  { maxSize: 100, of: (size) => `${times(size, (k) => `query q${k} { ...f0 }`)} ${fragment(0, 'pets { id }')}` },
  { maxSize: 240, of: (size) => `query (${times(size, (k) => `$v${k}: Int`)}) { pets(limit: $v0) { id } }` },
  { maxSize: 900, of: (size) => `{ petsById(ids: [${times(size, (k) => `"${k}"`)}]) { id } }` },
  { maxSize: 80, of: (size) => `query ($ids: [ID!]!) { ${times(size, (k) => `a${k}: petsById(ids: $ids) { id }`)} }` },
  { maxSize: 1, of: () => 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }' },
  // Text.
  { maxSize: 30_000, of: (size) => `{ ${'\n'.repeat(size)} nobody }` },
  { maxSize: 60_000, of: (size) => `{ ${'x'.repeat(size)} }` },
  // A long name that the result has many times.
  {
    maxSize: 255,
    of: (size) => `{ ${times(50, (k) => `a${k}: pets(limit: 100) { ...f0 }`)} } ${named('Pet', 'id', size)}`,
  },
  {
    maxSize: 255,
    of: (size) => `{ __schema { ${times(47, (k) => `a${k}: types { ...f0 }`)} } } ${named('__Type', 'name', size)}`,
  },
];

function times(count: number, one: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => one(index)).join(' ');
}

function named(type: string, field: string, length: number): string {
  return `fragment f0 on ${type} { ${'x'.repeat(length)}: ${field} }`;
}

function fragment(number: number, selection: string): string {
  return `fragment f${number} on Query { ${selection} }`;
}
