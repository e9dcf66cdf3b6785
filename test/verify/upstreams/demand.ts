import type { Random } from '../../support/random.ts';

/** What clients want: always more, so many at once and so often, or a job of a few each three minutes and many each hour. */
export type Demand =
  | { readonly kind: 'always'; readonly clients: number }
  | { readonly kind: 'bursts'; readonly calls: number; readonly everyMs: number }
  | { readonly kind: 'job'; readonly each3Minutes: number; readonly eachHour: number };

/** A call that a client wants from a moment on, until it gives up. */
export interface WantedCall {
  readonly fromMs: number;
  readonly untilMs: number;
}

const GIVE_UP_MS = 600_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Returns the calls that are wanted, in their order; none where clients always want more. */
export function wantedCalls(demand: Demand, span: WantedCall, random: Random): readonly WantedCall[] {
  if (demand.kind === 'always') return [];
  if (demand.kind === 'bursts') return each(demand.everyMs, demand.calls, span, random);
  const few = each(3 * MINUTE_MS, demand.each3Minutes, span, random);
  const many = each(HOUR_MS, demand.eachHour, span, random);
  return [...few, ...many].toSorted((one, other) => one.fromMs - other.fromMs);
}

function each(everyMs: number, calls: number, { fromMs, untilMs }: WantedCall, random: Random): WantedCall[] {
  const wanted: WantedCall[] = [];
  for (let atMs = fromMs + Math.floor(random() * everyMs); atMs < untilMs - GIVE_UP_MS; atMs += everyMs) {
    for (let call = 0; call < calls; call += 1) wanted.push({ fromMs: atMs, untilMs: atMs + GIVE_UP_MS });
  }
  return wanted;
}
