import type { Permit } from '../../../src/quota/account/format.ts';
import { endOfPause, isBesideProbe, isInPause } from '../../support/plan-rules.ts';
import type { Pause } from '../../support/plan-rules.ts';

type Granted = Pick<Permit, 'grantedAtMs'>;

/** Returns what a 429 demands that is known now. What is granted in the same moment is granted after it. */
export function pauseFrom(nowMs: number, retryAfterMs: number, before: Pause | undefined): Pause {
  return { knownAtMs: nowMs - 1, untilMs: Math.max(before?.untilMs ?? 0, nowMs + retryAfterMs) };
}

/**
 * Returns what is wrong with permits that are granted after a 429.
 *
 * @param underWay those of calls without a response that petql has not given up.
 */
export function grantProblems(
  pause: Pause | undefined,
  permits: readonly Granted[],
  underWay: readonly Granted[],
): string[] {
  if (!pause) return [];
  const followers = underWay.filter((permit) => isAfter(permit, pause)).map(callOf);
  for (const permit of permits) {
    if (isInPause(pause, permit.grantedAtMs)) return ['a call is sent before Retry-After is over'];
    if (isBesideProbe(permit.grantedAtMs, followers)) return ['more than one probe follows a 429'];
    followers.push(callOf(permit));
  }
  return [];
}

/** Whether the permit was granted after the pause, so that its call is a probe. */
export function isAfter({ grantedAtMs }: Granted, pause: Pause | undefined): boolean {
  return pause !== undefined && grantedAtMs >= endOfPause(pause);
}

function callOf({ grantedAtMs }: Granted) {
  return { sentAtMs: grantedAtMs, endedAtMs: Infinity, isServed: false };
}
