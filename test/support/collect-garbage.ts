import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Has all memory collected that nothing holds, for tests of what is held. */
export const collectGarbage: () => void = (() => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
})();
