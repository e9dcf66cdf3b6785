import { runSoak } from './soak/run-soak.ts';
import type { SoakOptions } from './soak/run-soak.ts';
import type { Check, Suite } from './suite.ts';

export const soak: Suite = {
  about: 'a mixed load for long, while a fault injector harms all parts',
  seed: 'random',
  // What a process holds is judged after some five minutes.
  minutes: 10,
  checks: [
    soakOf('replicas', 'three replicas on one Redis keep every promise', { replicas: 3 }),
    soakOf('state-file', 'one process with a state file keeps every promise', { replicas: 1 }),
    {
      ...soakOf('quiet', 'three replicas keep every promise where nothing is harmed', { harmed: false }),
      onRequest: true,
    },
  ],
};

function soakOf(name: string, goal: string, options: Partial<SoakOptions>): Check {
  return {
    name,
    goal,
    run: ({ seed, minutes, print }) => runSoak({ ...options, seed, seconds: minutes * 60, print }),
  };
}
