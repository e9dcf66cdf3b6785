import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { QuotaView, QuotaWindow } from '../caller/quota.ts';
import type { CallerView } from '../caller/caller.ts';
import type { Clock } from '../clock.ts';
import type { Events, UpstreamCallEvent } from '../events.ts';
import { PLANS, planName } from '../plan.ts';
import type { Health } from '../server/http/health.ts';
import { version } from '../version.ts';
import { LastHour } from './last-hour.ts';

/** States that are read when Prometheus scrapes or somebody opens the quota page. */
export interface AdminSources {
  readonly views: () => AsyncIterable<CallerView>;
  readonly health: () => Health;
  readonly replicas: () => number;
  readonly clock: Clock;
}

export type Metrics = ReturnType<typeof createMetrics>;

/** The one file that knows prom-client: the metrics and their names. Labels are few and never a caller's. */
export function createMetrics({ views, health, replicas, clock }: AdminSources) {
  const register = new Registry();
  const registers = [register];
  // prom-client never ends its collection: each gateway with metrics leaves a timer behind.
  collectDefaultMetrics({ register });
  const operations = counter('petql_operations_total', 'Operations by type and first error, or OK.', [
    'type',
    'outcome',
  ]);
  const operationSeconds = histogram('petql_operation_duration_seconds', 'Duration with the wait for quota.', ['type']);
  const responseAge = histogram('petql_response_age_seconds', 'Age of the oldest data in a result.', [], AGES);
  const stale = counter('petql_stale_operations_total', 'Operations that returned stale data, by reason.', ['reason']);
  const saved = counter('petql_saved_calls_total', 'Reads that cost no upstream call, by reason.', ['reason']);
  const calls = counter('petql_upstream_calls_total', 'Calls to the pet API.', ['operation', 'status', 'reason']);
  const retries = counter('petql_upstream_retries_total', 'Upstream calls that repeat a failed read.', ['operation']);
  const callSeconds = histogram('petql_upstream_call_duration_seconds', 'Duration of upstream calls.', ['operation']);
  const waitSeconds = histogram('petql_wait_seconds', 'Wait of upstream calls for the quota.', ['kind']);
  const unfair = counter('petql_visitor_refusals_total', 'Reads and creates over the share of a visitor.', ['kind']);
  const storeSeconds = histogram('petql_store_update_seconds', 'Duration of updates in Redis.', ['result']);
  const queued = gauge('petql_queued_calls', 'Upstream calls that wait for the quota.');
  const callers = gauge('petql_callers', 'API keys in use, by plan.', ['plan']);
  const paused = gauge('petql_paused_keys', 'API keys that are paused after a 429.');
  const limit = gauge('petql_quota_limit_calls', 'Calls that the windows allow, over all keys of a plan.', WINDOW);
  const remaining = gauge('petql_quota_remaining_calls', 'Calls left in the windows, over all keys of a plan.', WINDOW);
  const fullest = gauge('petql_quota_used_share_max', 'Used share of the fullest window, from 0 to 1.', WINDOW);
  const redisUp = gauge('petql_redis_up', 'Whether Redis is available; no sample where none is configured.');
  const replicaCount = gauge('petql_replicas', 'Processes that share the quota, as far as this one knows.');
  const getRoute = gauge('petql_get_route_available', 'Whether GET /pets/{petId} exists, as far as petql knows.');

  const lastHour = new LastHour(clock);

  const events: Events = {
    operation({ type, outcome, tookMs, oldestAgeMs, staleReason }) {
      if (outcome === REFUSED) lastHour.add('refused', 1);
      operations.inc({ type, outcome });
      operationSeconds.observe({ type }, tookMs / 1000);
      if (oldestAgeMs !== undefined) responseAge.observe(oldestAgeMs / 1000);
      if (staleReason !== undefined) stale.inc({ reason: staleReason });
    },
    saved({ reason, calls: count }) {
      lastHour.add('callsSaved', count);
      saved.inc({ reason }, count);
    },
    upstreamCall({ operation, status, reason, tookMs }) {
      lastHour.add('callsMade', 1);
      calls.inc({ operation, status: statusLabel(status), reason });
      callSeconds.observe({ operation }, tookMs / 1000);
    },
    waited: ({ kind, waitedMs }) => waitSeconds.observe({ kind }, waitedMs / 1000),
    retried: ({ operation }) => retries.inc({ operation }),
    visitorRefused: ({ kind }) => unfair.inc({ kind }),
    storeUpdate: ({ result, tookMs }) => storeSeconds.observe({ result }, tookMs / 1000),
  };

  gauge('petql_build_info', 'Always 1; the version is a label.', ['version']).set({ version }, 1);
  // For Prometheus, a series that begins with 1 has not increased.
  for (const operation of OPERATIONS) calls.inc({ operation, status: '429', reason: 'rate-limited' }, 0);
  operations.inc({ type: 'mutation', outcome: 'OUTCOME_UNKNOWN' }, 0);
  for (const type of ['query', 'mutation']) operations.inc({ type, outcome: 'INTERNAL_SERVER_ERROR' }, 0);

  return {
    ...events,
    contentType: register.contentType,
    /** All metrics in Prometheus's text format. */
    async text() {
      await collect();
      return register.metrics();
    },
    /** Of this process since its start. */
    async totals() {
      return {
        callsMade: await sumOf(calls),
        callsSaved: await sumOf(saved),
        refused: await sumOf(operations, REFUSED),
        stale: await sumOf(stale),
      };
    },
    /** What this process did in each minute of the last hour, the current one last. */
    lastHour: () => lastHour.minutes(),
  };

  function counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers });
  }

  function histogram(name: string, help: string, labelNames: string[], buckets = SECONDS): Histogram {
    return new Histogram({ name, help, buckets, labelNames, registers });
  }

  function gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name, help, labelNames, registers });
  }

  async function collect(): Promise<void> {
    const plans = new Map<string, PlanTotals>();
    let waiting = 0;
    for await (const { quota } of views()) {
      waiting += quota.queued;
      addQuota(quota, plans);
    }

    // All in one turn, since another scrape may be under way.
    for (const each of [callers, limit, remaining, fullest]) each.reset();
    for (const [plan, { keys, windows }] of plans) {
      callers.set({ plan }, keys);
      for (const [window, sums] of windows) {
        limit.set({ plan, window }, sums.limit);
        remaining.set({ plan, window }, sums.remaining);
        fullest.set({ plan, window }, sums.maxShare);
      }
    }
    queued.set(waiting);
    const { redis, isGetRouteWorking, pausedKeys } = health();
    paused.set(pausedKeys);
    if (redis === undefined) redisUp.remove();
    else redisUp.set(redis === 'connected' ? 1 : 0);
    replicaCount.set(replicas());
    getRoute.set(isGetRouteWorking ? 1 : 0);
  }
}

/** What the keys of one plan have together. */
interface PlanTotals {
  keys: number;
  readonly windows: Map<QuotaWindow['window'], { limit: number; remaining: number; maxShare: number }>;
}

function addQuota({ plan: name, windows }: QuotaView, plans: Map<string, PlanTotals>): void {
  const plan = labelOf(name, windows);
  const totals = plans.get(plan) ?? { keys: 0, windows: new Map() };
  plans.set(plan, totals);
  totals.keys += 1;
  for (const { window, limit, remaining, used } of windows) {
    const sums = totals.windows.get(window) ?? { limit: 0, remaining: 0, maxShare: 0 };
    totals.windows.set(window, sums);
    sums.limit += limit;
    sums.remaining += remaining;
    sums.maxShare = Math.max(sums.maxShare, Math.min(1, used / Math.max(1, limit)));
  }
}

async function sumOf(counter: Counter, outcome?: string): Promise<number> {
  const { values } = await counter.get();
  const counted = values.filter(({ labels }) => outcome === undefined || labels['outcome'] === outcome);
  return counted.reduce((sum, { value }) => sum + value, 0);
}

/** The outcome of an operation that the quota did not allow. */
const REFUSED = 'RATE_LIMITED';
const OPERATIONS: readonly UpstreamCallEvent['operation'][] = ['createPet', 'getPet', 'listPets'];
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const AGES = [0.01, 0.1, 1, 5, 30, 60, 300, 600, 3600];
const WINDOW = ['plan', 'window'];
const PLAN_NAMES: ReadonlySet<string> = new Set(Object.values(PLANS).map(planName));
const PUBLISHED: ReadonlySet<number> = new Set(
  Object.values(PLANS).flatMap(({ perMinute, perDay }) => [perMinute, perDay]),
);

/** An unknown plan is custom where one of its limits is no published one. */
function labelOf(plan: string | undefined, windows: QuotaView['windows']): string {
  if (plan !== undefined) return PLAN_NAMES.has(plan) ? plan : 'custom';
  return windows.some((window) => !PUBLISHED.has(window.limit)) ? 'custom' : 'unknown';
}

/** Known statuses have their own label, others share one for each hundred: an upstream may respond with any number. */
function statusLabel(status: number | undefined): string {
  if (status === undefined) return 'none';
  return KNOWN_STATUSES.has(status) ? String(status) : `${Math.floor(status / 100)}xx`;
}

const KNOWN_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 408, 410, 429, 500, 502, 503, 504]);
