/** A client that accepts both alike gets the first. */
const MEDIA_TYPES = ['application/json', 'application/graphql-response+json'] as const;
type MediaType = (typeof MEDIA_TYPES)[number];

/**
 * Returns the media type of a response: the one with the highest weight in `Accept`, of equal ones the one named first there
 * (RFC 9110, section 12.5.1). Undefined where neither is accepted.
 */
export function acceptedType(accept: string | undefined): MediaType | undefined {
  if (!accept || accept === '*/*' || accept === MEDIA_TYPES[0]) return MEDIA_TYPES[0];
  const ranges = accept.split(',').map(readRange);
  const accepted = MEDIA_TYPES.flatMap((type) => {
    // The most specific range decides, wherever it stands.
    const names = [type, 'application/*', '*/*'];
    const index =
      names.map((name) => ranges.findIndex((range) => range.name === name)).find((found) => found >= 0) ?? -1;
    const weight = ranges[index]?.weight ?? 0;
    return weight > 0 ? [{ type, weight, index }] : [];
  });
  return accepted.toSorted((a, b) => b.weight - a.weight || a.index - b.index)[0]?.type;
}

interface Range {
  /** Such as `application/*`; empty for a character set other than UTF-8. */
  readonly name: string;
  readonly weight: number;
}

function readRange(text: string): Range {
  const [name = '', ...params] = text.replaceAll(/\s/g, '').toLowerCase().split(';');
  const charset = params.find((param) => param.startsWith('charset=')) ?? 'charset=utf-8';
  const weight = params.find((param) => param.startsWith('q='))?.slice(2) ?? '1';
  return { name: /^charset="?utf-8"?$/.test(charset) ? name : '', weight: Number(weight) || 0 };
}
