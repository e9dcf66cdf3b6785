import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { checkContainers } from './engine/containers.ts';
import { Engine, missingForEngine } from './engine/engine.ts';
import { checkReplicas } from './engine/replicas.ts';
import type { Check, CheckOptions, Suite } from './suite.ts';

/** The image and compose.yaml on a real engine, without a registry of images. */
export const engine: Suite = {
  about: 'builds the image and runs it, and compose.yaml, under Docker; as root on Debian',
  checks: [
    check('image', 'the image runs, is healthy and stops in each way that the documentation has', checkContainers),
    check('compose', 'three replicas serve through restarts, a restart of Redis and a killed replica', checkReplicas),
  ],
};

function check(
  name: string,
  goal: string,
  judge: (started: Engine, print: CheckOptions['print']) => Promise<readonly Row[]>,
): Check {
  return { name, goal, run };

  async function run({ print }: CheckOptions): Promise<readonly Row[]> {
    const missing = await missingForEngine();
    // As in the suite of files: a gap in continuous integration is a failure.
    if (missing !== undefined) {
      const problems = process.env['CI'] ? [missing] : [];
      return [rowOf({ promise: goal, looked: 0, problems, measured: missing })];
    }
    await using started = await Engine.start(print);
    return await judge(started, print);
  }
}
