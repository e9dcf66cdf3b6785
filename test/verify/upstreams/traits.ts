import type { Plan } from '../../../src/common/plan.ts';
import type { Move, Shape } from './counted-window.ts';
import type { Demand } from './demand.ts';

/** How an upstream counts and what it tells, within pet-api.md, and somewhat beside it. */
export interface UpstreamTraits {
  readonly plan: Plan;
  /** Whether petql is started with the plan. */
  readonly isConfigured: boolean;
  readonly minutes: Shape;
  readonly days: Shape;
  /** How long after midnight a fixed day ends. */
  readonly dayEndsMs: number;
  /** One day has 23 or 25 hours. */
  readonly summerTime: Move | undefined;
  /** Which window the headers of a response describe: the one with fewer calls left, the fuller one, or one of them always. */
  readonly tells: 'any' | 'day' | 'fewer' | 'fuller' | 'hour' | 'minute' | 'nothing';
  readonly resetAs: 'delta' | 'delta-ms' | 'far' | 'milliseconds' | 'none' | 'seconds' | 'zone';
  readonly sendsDate: boolean;
  /** How far petql's clock is ahead. */
  readonly aheadMs: number;
  /** How late the counts in the headers are. */
  readonly lateMs: number;
  /** How many nodes count for their headers, each its own calls. */
  readonly nodes: number;
  /** What is added to `X-RateLimit-Remaining`. */
  readonly offBy: number;
  /** Calls more or less than the plan that a minute really allows. */
  readonly slack: number;
  /** A limit that no document shows: so many calls in a time that looks back, or in an hour of the clock. */
  readonly hidden: { readonly calls: number; readonly inMs: number; readonly shape: Shape } | undefined;
  /** Calls at a time that no document shows. */
  readonly atATime: number | undefined;
  /** Whether a 429 says when to return. */
  readonly saysRetryAfter: boolean;
  /** Other programs use so many calls at once, so often, so long after a multiple of that. */
  readonly others: readonly { readonly calls: number; readonly everyMs: number; readonly afterMs: number }[];
  /** A proxy answers one call in so many, with limits of its own. */
  readonly foreignEvery: number | undefined;
  readonly outages: readonly (Span & { readonly counts: boolean })[];
  /** The share of calls that get a 500, which is not counted. */
  readonly failing: number;
  /** The share of calls that get a 429 for no reason. */
  readonly random429s: number;
  /** All calls get a 429; `retryAfterS` may be their end, which is not the key's. */
  readonly storms: readonly (Span & { readonly retryAfterS: number | 'its end' | undefined })[];
  /** The plan from then on. */
  readonly change: { readonly atMs: number; readonly plan: Plan } | undefined;
  /** When petql starts anew without its count. */
  readonly restartsMs: readonly number[];
  readonly latencyMs: readonly [number, number];
  readonly demand: Demand;
}

export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** Returns the upstream in a line: what is not as with an exact one. */
export function describeTraits({ plan, outages, change, demand, restartsMs, storms, ...rest }: UpstreamTraits): string {
  const usual = new Set<unknown>([0, 1, undefined, 'seconds', true]);
  const words = Object.entries(rest).filter(
    ([name, value]) =>
      !usual.has(value) &&
      !(Array.isArray(value) && value.length === 0) &&
      !(name === 'isConfigured' && value === false),
  );
  const texts = words.map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  if (rest.isConfigured) texts.push('configured');
  if (change) texts.push(`plan ${change.plan.perMinute}/${change.plan.perDay} from ${timeOf(change.atMs)}`);
  for (const atMs of restartsMs) texts.push(`restart at ${timeOf(atMs)}`);
  for (const span of outages) texts.push(`down ${spanOf(span)}`);
  for (const { retryAfterS, ...span } of storms) texts.push(`429s ${spanOf(span)}, Retry-After ${retryAfterS}`);
  return [`${plan.perMinute}/${plan.perDay}`, ...texts, `wants ${JSON.stringify(demand)}`].join(', ');
}

function timeOf(atMs: number): string {
  return new Date(atMs).toISOString();
}

function spanOf({ fromMs, untilMs }: Span): string {
  return `for ${(untilMs - fromMs) / MINUTE_MS} min at ${timeOf(fromMs)}`;
}
