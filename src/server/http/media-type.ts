/** A client that accepts both alike gets the first. */
const RESPONSE_TYPES = ['application/json', 'application/graphql-response+json'] as const;
export type ResponseType = (typeof RESPONSE_TYPES)[number];

/** Names that clients have for JSON: the second is from before GraphQL over HTTP was written. */
const JSON_NAMES: readonly string[] = ['application/json', 'application/graphql+json'];

/**
 * Returns the media type of a response: the one with the highest weight in `Accept`, of equal ones the one named first there
 * (RFC 9110, section 12.5.1). Undefined where neither is accepted. JSON has no character sets (RFC 8259, section 11).
 */
export function acceptedType(accept: string | undefined): ResponseType | undefined {
  if (!accept || accept === '*/*' || accept === RESPONSE_TYPES[0]) return RESPONSE_TYPES[0];
  const ranges = readMediaTypes(accept);
  const accepted = RESPONSE_TYPES.flatMap((type) => {
    // The most specific range decides, wherever it stands. Java's own client names all types by one star.
    const names = [...(type === 'application/json' ? JSON_NAMES : [type]), 'application/*', '*/*', '*'];
    const index =
      names.map((name) => ranges.findIndex((range) => range.name === name)).find((found) => found >= 0) ?? -1;
    const weight = ranges[index]?.weight ?? 0;
    return weight > 0 ? [{ type, weight, index }] : [];
  });
  return accepted.toSorted((a, b) => b.weight - a.weight || a.index - b.index)[0]?.type;
}

/**
 * Whether a `Content-Type` is JSON, each time that it came: browsers judge such a header by its first value. Its charset says
 * nothing, as in `Accept`: clients that name another one send ASCII, and the bytes of a body must be UTF-8.
 */
export function isJson(contentType: string): boolean {
  const types = readMediaTypes(contentType);
  return types.length > 0 && types.every(({ name }) => JSON_NAMES.includes(name));
}

interface MediaType {
  /** Such as `application/*`. */
  readonly name: string;
  /** Default 1; 0 where it is no number. */
  readonly weight: number;
}

/** Reads `Accept` or `Content-Type`, whose names and values have no case here. */
function readMediaTypes(header: string): MediaType[] {
  const items = header.replaceAll(/\s/g, '').toLowerCase().match(LIST_ITEM) ?? [];
  return items.map((item) => {
    const [name = '', ...params] = item.match(ITEM_PART) ?? [];
    const weight = params
      .find((param) => param.startsWith('q='))
      ?.slice(2)
      .replaceAll('"', '');
    return { name, weight: Number(weight ?? 1) || 0 };
  });
}

/** Quoted values may hold the separators. */
const LIST_ITEM = /(?:[^,"]|"(?:\\.|[^"\\])*"?)+/g;
const ITEM_PART = /(?:[^;"]|"(?:\\.|[^"\\])*"?)+/g;
