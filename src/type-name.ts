/** What a value is, for an error that does not repeat the value: `null`, `list`, or what `typeof` says. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'list' : typeof value;
}
