/** A client that accepts both alike gets the first. */
const RESPONSE_TYPES = ['application/json', 'application/graphql-response+json'] as const;
export type ResponseType = (typeof RESPONSE_TYPES)[number];

/** Browsers ask for this type when a person opens a page. */
export const HTML = 'text/html';
export const JSON_TYPE = RESPONSE_TYPES[0];

/** Names that clients have for JSON: the second is from before GraphQL over HTTP was written. */
const JSON_NAMES: readonly string[] = [JSON_TYPE, 'application/graphql+json'];

/** Returns the media type of a GraphQL response; undefined where neither is accepted. */
export function acceptedType(accept: string | undefined): ResponseType | undefined {
  return !accept || accept === '*/*' || accept === JSON_TYPE ? JSON_TYPE : preferredType(accept, RESPONSE_TYPES);
}

/** Whether a browser goes to an address, and shows what it gets. */
export function isBrowsing({
  method,
  headers: { accept },
}: {
  method: string;
  headers: { accept?: string | undefined };
}) {
  return method === 'GET' && preferredType(accept ?? '', [...RESPONSE_TYPES, HTML]) === HTML;
}

/**
 * Returns the type with the highest weight in `Accept`, of equal ones the one named first there (RFC 9110, section 12.5.1), then
 * the first one here. Undefined where none is accepted. JSON has no character sets (RFC 8259, section 11).
 */
export function preferredType<Type extends string>(accept: string, types: readonly Type[]): Type | undefined {
  const ranges = readMediaTypes(accept);
  const accepted = types.flatMap((type) => {
    // The most specific range decides, wherever it stands. Java's own client names all types by one star.
    const names = [...(type === JSON_TYPE ? JSON_NAMES : [type]), type.replace(/\/.*/, '/*'), '*/*', '*'];
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
