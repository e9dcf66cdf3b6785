import type { Clock } from '../clock.ts';
import type { PetqlError } from '../errors.ts';
import type { KeyLog } from '../log.ts';
import type { Throttle } from '../throttle/throttle.ts';
import type { VisitorShares } from '../throttle/visitor-shares.ts';
import type { PetApi } from '../upstream/pet-api.ts';
import type { FailedCalls } from './failed-calls.ts';
import type { GetRoute } from './get-route.ts';
import type { PetCache } from './pet-cache.ts';
import type { ReadKey } from './read-key.ts';
import type { RefreshBudget } from './refresh-budget.ts';
import type { CallerLists } from './shared-lists.ts';
import type { RetryBudget } from './retry-budget.ts';

/** What the reads and the writes of one caller are made of. */
export interface CallerParts {
  readonly apiKey: string;
  readonly petApi: PetApi;
  readonly clock: Clock;
  readonly log: KeyLog;
  readonly throttle: Throttle;
  readonly visitorShares: VisitorShares;
  readonly cache: PetCache;
  readonly failedCalls: FailedCalls;
  /** Shared by all callers. */
  readonly getRoute: GetRoute;
  readonly refreshBudget: RefreshBudget;
  /** Shared by all callers. */
  readonly retryBudget: RetryBudget;
  /** What is remembered of a 401. */
  readonly rejectedKey: { readonly error: () => PetqlError | undefined; readonly accept: () => void };
  /** Undefined without Redis. */
  readonly sharedLists: CallerLists | undefined;
  /** The upstream rejected the key with 401, and not because of a ban. */
  readonly onRejected: () => void;
  /** Called when a read or a create is refused since its visitor has used its share. */
  readonly onVisitorRefused: (kind: 'read' | 'write') => void;
  /** Called when a retry is sent. */
  readonly onRetry: (key: ReadKey) => void;
}
