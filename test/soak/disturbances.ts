/** What was done to the parts, and when, so that the checks can tell what is explained by it. */
export interface Disturbances {
  /** @returns what is called when it is over. */
  begin(kind: DisturbanceKind, replica?: number): () => void;
  /** Whether any of these kinds touched this span; where `replica` is given, of this replica or of all. */
  touched(kinds: readonly DisturbanceKind[], span: Span, replica?: number): boolean;
  /** Those of them. */
  touching(kinds: readonly DisturbanceKind[], span: Span, replica?: number): readonly Disturbance[];
  readonly all: readonly Disturbance[];
}

/**
 * `emptied`: Redis lost what it held. `redis`: it was gone, slow, stopped or full. `upstream`: calls failed or were slow.
 * `stalled`: it answered nobody for a while, though nothing need have been done to it. `frozen`: a replica was stopped by
 * SIGSTOP. `killed`: it was killed and gone. `stopping`: SIGTERM, and gone.
 */
export type DisturbanceKind = 'clock' | 'emptied' | 'frozen' | 'killed' | 'redis' | 'stalled' | 'stopping' | 'upstream';

export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Disturbance extends Span {
  readonly kind: DisturbanceKind;
  readonly replica: number | undefined;
}

export function createDisturbances(now: () => number = () => performance.now()): Disturbances {
  const all: { -readonly [Key in keyof Disturbance]: Disturbance[Key] }[] = [];
  return {
    all,
    begin(kind, replica) {
      const one = { kind, replica, fromMs: now(), untilMs: Infinity };
      all.push(one);
      return () => {
        one.untilMs = now();
      };
    },
    touched: (...which) => all.some((one) => touches(one, ...which)),
    touching: (...which) => all.filter((one) => touches(one, ...which)),
  };
}

function touches(
  one: Disturbance,
  kinds: readonly DisturbanceKind[],
  { fromMs, untilMs }: Span,
  replica?: number,
): boolean {
  return (
    kinds.includes(one.kind) &&
    one.fromMs <= untilMs &&
    one.untilMs >= fromMs &&
    (replica === undefined || one.replica === undefined || one.replica === replica)
  );
}
