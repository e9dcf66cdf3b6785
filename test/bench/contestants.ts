import { fileURLToPath } from 'node:url';
import { PETQL } from './build-petql.ts';
import type { Workload } from './workloads.ts';

/** Something that is measured. */
export interface Contestant {
  readonly name: string;
  readonly program: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** `constant` answers what it is given; `rest` takes the REST call itself. */
  readonly speaks: 'constant' | 'graphql' | 'rest';
}

const peer = (name: string) => fileURLToPath(new URL(`peers/${name}.js`, import.meta.url));
const PLAN = ['--plan', '100000000/900000000'];

export const CONTESTANTS: readonly Contestant[] = [
  { name: 'bare node:http, constant body', program: peer('bare'), speaks: 'constant' },
  { name: 'undici pass-through', program: peer('pass-through'), speaks: 'rest' },
  { name: 'the same, a Bottleneck job a call', program: peer('pass-through'), env: { JOBS: '1' }, speaks: 'rest' },
  { name: 'petql', program: PETQL, args: [...PLAN, '--max-age-ms', '600000'], speaks: 'graphql' },
  { name: 'petql, default --max-age-ms', program: PETQL, args: PLAN, speaks: 'graphql' },
  { name: 'graphql-yoga', program: peer('yoga'), speaks: 'graphql' },
  { name: 'Apollo Server', program: peer('apollo'), speaks: 'graphql' },
  { name: 'Mercurius', program: peer('mercurius'), speaks: 'graphql' },
  { name: 'Mercurius with JIT', program: peer('mercurius'), env: { JIT: '1' }, speaks: 'graphql' },
];

/** What all others are measured against. */
export const BASELINES = [CONTESTANTS[0]?.name, CONTESTANTS[2]?.name, 'graphql-yoga', 'Mercurius with JIT'] as string[];

export function takesPart({ speaks }: Contestant, { restPath }: Workload): boolean {
  return speaks !== 'rest' || restPath !== undefined;
}
