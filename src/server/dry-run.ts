import type { ExecutionArgs, ExecutionResult } from 'graphql';
import type { CallLimit } from './call-limit.ts';
import { graphqlError } from './error-answers.ts';
import type { RequestContext } from './request-context.ts';

/** The price of an operation, in `extensions.petql.dryRun`. */
export interface DryRun {
  /** Calls that it can cost at worst with what is known now, retries aside; some of them creations. */
  readonly upstreamCalls: number;
  readonly creations: number;
  /** Whether they fit what is left of the plan now, behind what waits already. */
  readonly fits: boolean;
  /** When the last of them could be sent, as far as is known; and in how many milliseconds. */
  readonly fitsAt: string;
  readonly waitMs: number;
  /** The window that makes them wait longest. */
  readonly window: 'DAY' | 'MINUTE' | undefined;
}

/** Runs nothing, and answers with the price; and with the errors that the operation would have whatever the store holds. */
export async function dryRun(args: ExecutionArgs, context: RequestContext, limit: CallLimit): Promise<ExecutionResult> {
  const admission = await limit.admit(args, context);
  if ('refused' in admission) return admission.refused;
  const { wanted, result, upstreamCalls } = admission;
  const { waitMs, at, window } = await context.fit(upstreamCalls);
  const price: DryRun = {
    upstreamCalls,
    creations: wanted.creations,
    fits: waitMs === 0,
    fitsAt: at.toISOString(),
    waitMs,
    window,
  };
  const needsKey = wanted.demands.length + wanted.creations > 0;
  const refused = context.refusal && needsKey ? [graphqlError(context.refusal)] : [];
  const errors = [...(result.errors ?? []), ...refused];
  return {
    data: null,
    ...(errors.length > 0 ? { errors } : {}),
    extensions: { petql: { dryRun: price } },
  };
}

/** Whoever sends the header at all does not want anything to happen, unless it says so. */
export function wantsDryRun(header: string | null | undefined): boolean {
  return header !== null && header !== undefined && header.trim() !== '0';
}
