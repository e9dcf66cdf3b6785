import type { CallerNames } from './caller-names.ts';

/** The name of a caller that cannot be: no API key has a blank in it. */
const NOBODY = 'nobody has this key';

/** Tells two key secrets apart, and nothing of either: the name that nobody would have with it. */
export function secretFingerprint<Name extends ReturnType<CallerNames>>(nameOf: (apiKey: string) => Name): Name {
  return nameOf(NOBODY);
}
