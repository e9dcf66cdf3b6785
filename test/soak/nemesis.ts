import { setTimeout } from 'node:timers/promises';
import { between } from '../prove/random.ts';
import type { Random } from '../prove/random.ts';
import { troublesOf } from './troubles.ts';
import type { Trouble, World } from './troubles.ts';

/** Does harm by chance, one thing or several at a time, with quiet times in between. */
export interface Nemesis {
  /** How often each trouble was made. */
  readonly made: Readonly<Record<string, number>>;
  /** Repairs everything and makes no more. */
  stop(): Promise<void>;
}

export interface NemesisOptions {
  readonly world: World;
  readonly random: Random;
  /** How long it has, in milliseconds: a short run has short troubles. */
  readonly forMs: number;
  onTrouble(text: string): void;
}

const MOST_AT_A_TIME = 3;
const LONGEST_QUIET_MS = 15_000;
const LONGEST_TROUBLE_MS = 12_000;

export function startNemesis({ world, random, forMs, onTrouble }: NemesisOptions): Nemesis {
  const stopping = new AbortController();
  const troubles = troublesOf(world);
  const made: Record<string, number> = {};
  const quietMs = Math.min(LONGEST_QUIET_MS, forMs / 12);
  const troubleMs = Math.min(LONGEST_TROUBLE_MS, forMs / 8);
  const running = run();
  return {
    made,
    async stop() {
      stopping.abort();
      await running;
    },
  };

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await pause(between(random, quietMs / 4, quietMs));
      if (stopping.signal.aborted) return;
      await Promise.all(choose().map(make));
    }
  }

  /** No two of one group: they would repair each other. */
  function choose(): Trouble[] {
    const chosen = new Map<string, Trouble>();
    const times = between(random, 1, MOST_AT_A_TIME);
    for (let index = 0; index < times; index += 1) {
      const trouble = troubles[between(random, 0, troubles.length - 1)];
      if (trouble && !chosen.has(trouble.group)) chosen.set(trouble.group, trouble);
    }
    return [...chosen.values()];
  }

  async function make({ name, make: begin }: Trouble): Promise<void> {
    await pause(between(random, 0, troubleMs / 2));
    if (stopping.signal.aborted) return;
    made[name] = (made[name] ?? 0) + 1;
    // Now and then much longer, where the run is long.
    const holdMs = random() < 0.1 ? Math.min(30_000, troubleMs * 3) : between(random, troubleMs / 8, troubleMs);
    onTrouble(`${name} for ${Math.round(holdMs)} ms`);
    await begin({ ...world, random, hold: () => pause(holdMs) });
  }

  async function pause(ms: number): Promise<void> {
    await setTimeout(ms, undefined, { signal: stopping.signal }).catch(() => {});
  }
}
