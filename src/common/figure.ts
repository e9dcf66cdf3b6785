/** Returns a number for people: `1,000`. */
export function figure(value: number): string {
  return value.toLocaleString('en');
}
