/** In small variables all that is wrong is told, within reason. */
const MOST_ERRORS = 20;
/** Names, characters of texts and other values of small variables. */
const SMALL = 5_000;

/** How many errors of variables are looked for. Each of them shows the whole value that is wrong, which may fill a body. */
export function mostVariableErrors(variables: unknown): number {
  let left = SMALL;
  const open = [variables];
  while (open.length > 0 && left > 0) {
    const value = open.pop();
    left -= typeof value === 'string' ? value.length : 1;
    if (typeof value !== 'object' || value === null) continue;
    const entries = Object.entries(value);
    left -= entries.length;
    for (const [name, one] of left > 0 ? entries : []) {
      left -= name.length;
      open.push(one);
    }
  }
  return left > 0 ? MOST_ERRORS : 1;
}
