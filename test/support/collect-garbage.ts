/** Loaded before petql: at each SIGUSR2 this process collects its garbage, so that its metrics show what it keeps. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
process.on('SIGUSR2', () => collectGarbage());
