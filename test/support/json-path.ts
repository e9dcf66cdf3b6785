/** The names of the members on the way to a value. */
export type JsonPath = readonly string[];

export function valueAt(value: any, path: JsonPath): unknown {
  return path.reduce((inner, name) => inner[name], value);
}

/** Returns a copy with another value there. */
export function withValueAt(value: any, [name, ...path]: JsonPath, change: (before: any) => unknown): any {
  if (name === undefined) return change(value);
  const copy = Array.isArray(value) ? [...value] : { ...value };
  copy[name] = withValueAt(value[name], path, change);
  return copy;
}
