import type { Clock } from '../clock.ts';
import type { Events } from '../events.ts';
import type { KeyLog } from '../log.ts';
import type { GetRoute } from '../pets/get-route.ts';
import type { PetApi } from '../pets/pet-api.ts';
import type { CallLine } from '../throttle/call-line.ts';
import type { KeyQuota } from '../throttle/key-quota.ts';
import type { RetryBudget } from '../throttle/retry-budget.ts';
import type { PetCache } from './cache/pet-cache.ts';
import type { FailedCalls } from './failed-calls.ts';

/** What the reads and writes of one caller are made of. */
export interface CallerParts {
  readonly quota: KeyQuota;
  readonly line: CallLine;
  readonly cache: PetCache;
  readonly failedCalls: FailedCalls;
  /** Names the key by its hash. */
  readonly log: KeyLog;
  // All callers share these.
  readonly petApi: PetApi;
  readonly getRoute: GetRoute;
  readonly retryBudget: RetryBudget;
  readonly clock: Clock;
  readonly events: Events | undefined;
}
