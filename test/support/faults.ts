import type { Span } from './pet-api/pet-store.ts';

/** What was done to the parts, and when, so that the checks can tell what is explained by it. */
export interface Faults {
  /** @returns the function to call when it is over. */
  readonly begin: (kind: FaultKind, replica?: number) => () => void;
  /** Those of these kinds that touched this span; where `replica` is given, of this replica or of all. */
  readonly touching: (kinds: readonly FaultKind[], span: Span, replica?: number) => readonly NotedFault[];
}

/**
 * `emptied`: Redis lost what it held. `redis`: it was gone, slow, stopped or full. `stalled`: it stalled by itself.
 * `upstream`: calls failed or were slow. `frozen`: a replica was stopped by SIGSTOP. `killed`: it was killed and gone.
 * `stopping`: SIGTERM, and gone.
 */
export type FaultKind = 'emptied' | 'frozen' | 'killed' | 'redis' | 'stalled' | 'stopping' | 'upstream';

export interface NotedFault extends Span {
  readonly kind: FaultKind;
  readonly replica: number | undefined;
}

export function createFaults(now: () => number = () => performance.now()): Faults {
  const all: { -readonly [Key in keyof NotedFault]: NotedFault[Key] }[] = [];
  return {
    begin(kind, replica) {
      const fault = { kind, replica, fromMs: now(), untilMs: Infinity };
      all.push(fault);
      return () => void (fault.untilMs = now());
    },
    touching: (kinds, { fromMs, untilMs }, replica) =>
      all.filter(
        (fault) =>
          kinds.includes(fault.kind) &&
          fault.fromMs <= untilMs &&
          fault.untilMs >= fromMs &&
          (replica === undefined || fault.replica === undefined || fault.replica === replica),
      ),
  };
}

/** How long the machine kept this process, and those of petql, from running: it may be busy with other things. */
export interface Lateness {
  /** How long this process and that replica wanted to run and could not, in milliseconds, in all of the span. */
  readonly during: (span: Span, replica?: number) => number;
}

export const NEVER_LATE: Lateness = { during: () => 0 };
