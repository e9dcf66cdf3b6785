import type { CallerRequest } from '../common/caller-request.ts';
import { SOON_MS } from '../common/time-limit.ts';

/** Returns the request of a list that petql asks for itself. */
export function ownRequest(nowMs: number): CallerRequest {
  const freshness = {
    maxAgeMs: -1,
    maxStaleMs: -1,
    coalesceWithinMs: Infinity,
    mayCall: true,
    mayServeStaleToSaveCalls: false,
  };
  return {
    id: 'petql',
    operation: undefined,
    trace: undefined,
    freshness,
    deadlineMs: nowMs + SOON_MS,
    signal: () => undefined,
    visitor: undefined,
    isBackground: false,
    isDryRun: false,
    upstreamCalls: 0,
    promisedAtMs: -Infinity,
  };
}
