import { runSoak } from './soak/run-soak.ts';
import type { Check, Suite } from './suite.ts';

export const soak: Suite = {
  about: 'a mixed load for long, while a fault injector harms all parts',
  // What a process holds is judged after some five minutes.
  minutes: 10,
  checks: [
    soakOf('replicas', 'three replicas on one Redis keep every promise', { replicas: 3 }),
    soakOf('state-file', 'one process with a state file keeps every promise', { replicas: 1 }),
    {
      ...soakOf('quiet', 'three replicas keep every promise where nothing is harmed', { replicas: 3, harmed: false }),
      onRequest: true,
    },
  ],
};

function soakOf(name: string, goal: string, deployment: { replicas: number; harmed?: boolean }): Check {
  const run: Check['run'] = ({ minutes, ...options }) => runSoak({ ...deployment, ...options, seconds: minutes * 60 });
  return { name, goal, run };
}
