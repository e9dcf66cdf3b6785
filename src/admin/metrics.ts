import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { Callers } from '../caller/callers.ts';
import type { Clock } from '../common/clock.ts';
import { UPSTREAM_OPERATIONS } from '../common/events.ts';
import type { Events } from '../common/events.ts';
import type { HttpCounts } from '../server/http-counts.ts';
import type { Health } from '../server/http/health.ts';
import { LISTS } from '../pets/read-key.ts';
import { GET } from '../closed/closed-for-key.ts';
import { API } from '../closed/closed-operations.ts';
import { version } from '../common/version.ts';
import { LastHour } from './last-hour.ts';
import type { Minute } from './last-hour.ts';
import { addQuota } from './plan-totals.ts';
import type { PlanTotals } from './plan-totals.ts';

/** States that are read when Prometheus scrapes or somebody opens the quota page. */
export interface AdminSources {
  readonly callers: Callers;
  readonly health: () => Health;
  readonly replicas: { readonly count: number };
  /** Undefined where others listen. */
  readonly http: HttpCounts | undefined;
}

/** Counts of this process since its start. */
export interface Totals {
  readonly callsMade: number;
  readonly callsSaved: number;
  /** Operations that were RATE_LIMITED. */
  readonly refused: number;
  readonly stale: number;
}

/** The outcome of an operation that the quota did not allow. */
const REFUSED = 'RATE_LIMITED';
const ALERTED_OUTCOMES = ['DOWNSTREAM_SERVICE_ERROR', 'FORBIDDEN', 'GATEWAY_TIMEOUT', 'INTERNAL_SERVER_ERROR', REFUSED];
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const AGES = [0.01, 0.1, 1, 5, 30, 60, 300, 600, 3600];
const WINDOW_LABELS = ['plan', 'window'];
const CLOSABLE: readonly string[] = [API, GET, ...LISTS];
const KNOWN_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 408, 410, 429, 500, 502, 503, 504]);

/** The metrics and their names, in the one file that imports prom-client. Labels are few and never a caller's. */
export class Metrics {
  readonly #planShare: number;
  readonly #lastHour: LastHour;
  readonly #register = new Registry();

  // Each event counts in these.
  readonly #operations = this.#counter('petql_operations_total', 'Operations by type and first error, or OK.', [
    'type',
    'outcome',
  ]);
  readonly #operationSeconds = this.#histogram(
    'petql_operation_duration_seconds',
    'Duration with the wait for quota.',
    ['type'],
  );
  readonly #ages = this.#histogram('petql_response_age_seconds', 'Age of the oldest data in a result.', [], AGES);
  readonly #stale = this.#counter('petql_stale_operations_total', 'Operations that returned stale data, by reason.', [
    'reason',
  ]);
  readonly #saved = this.#counter('petql_saved_calls_total', 'Reads that cost no upstream call, by reason.', [
    'reason',
  ]);
  readonly #calls = this.#counter('petql_upstream_calls_total', 'Calls to the pet API.', [
    'operation',
    'status',
    'reason',
  ]);
  readonly #retries = this.#counter('petql_upstream_retries_total', 'Upstream calls that repeat a failed read.', [
    'operation',
  ]);
  readonly #callSeconds = this.#histogram('petql_upstream_call_duration_seconds', 'Duration of upstream calls.', [
    'operation',
  ]);
  readonly #waitSeconds = this.#histogram('petql_wait_seconds', 'Wait of upstream calls for the quota.', ['kind']);
  readonly #refusals = this.#counter('petql_refusals_total', 'Reads and writes that get no call, by reason.', [
    'kind',
    'reason',
  ]);
  readonly #leftOut = this.#counter(
    'petql_pets_left_out_total',
    'Pets that lists go without, since they break the contract.',
    [],
  );
  readonly #storeSeconds = this.#histogram('petql_store_update_seconds', 'Duration of updates in Redis.', ['result']);

  // Each scrape sets these.
  readonly #responses = this.#counter('petql_http_responses_total', 'HTTP responses by status, refusals among them.', [
    'status',
  ]);
  readonly #dropped = this.#counter('petql_dropped_connections_total', 'Connections beyond the maximum.', []);
  readonly #queued = this.#gauge('petql_queued_calls', 'Upstream calls that wait for the quota.');
  readonly #callers = this.#gauge('petql_callers', 'API keys in use, by plan.', ['plan']);
  readonly #paused = this.#gauge('petql_paused_keys', 'API keys that are paused after a 429.');
  readonly #limit = this.#gauge(
    'petql_quota_limit_calls',
    'Calls that the windows allow, over all keys of a plan.',
    WINDOW_LABELS,
  );
  readonly #remaining = this.#gauge(
    'petql_quota_remaining_calls',
    'Calls left in the windows, over all keys of a plan.',
    WINDOW_LABELS,
  );
  readonly #maxShare = this.#gauge(
    'petql_quota_used_share_max',
    'Used share of the fullest window, from 0 to 1.',
    WINDOW_LABELS,
  );
  readonly #redisUp = this.#gauge('petql_redis_up', 'Whether Redis is available; no sample where none is configured.');
  readonly #replicas = this.#gauge('petql_replicas', 'Processes that share the quota, as this one counts them.');
  readonly #closed = this.#gauge('petql_closed_operations', 'API keys for which petql makes no such call for now.', [
    'operation',
  ]);
  readonly #getRoute = this.#gauge('petql_get_route_available', 'Whether GET /pets/{petId} works.');

  /** Counts what happens in the gateway. */
  readonly events: Events = {
    operation: ({ type, outcome, tookMs, savings, oldestAgeMs, staleReason }) => {
      if (outcome === REFUSED) this.#lastHour.add('refused', 1);
      this.#operations.inc({ type, outcome });
      this.#operationSeconds.observe({ type }, tookMs / 1000);
      if (oldestAgeMs !== undefined) this.#ages.observe(oldestAgeMs / 1000);
      if (staleReason !== undefined) this.#stale.inc({ reason: staleReason });
      for (const [reason, calls] of Object.entries(savings)) {
        this.#lastHour.add('callsSaved', calls);
        this.#saved.inc({ reason }, calls);
      }
    },
    upstreamCall: ({ operation, status, reason, tookMs }) => {
      this.#lastHour.add('callsMade', 1);
      this.#calls.inc({ operation, status: statusLabel(status), reason });
      this.#callSeconds.observe({ operation }, tookMs / 1000);
    },
    waited: ({ kind, waitedMs }) => this.#waitSeconds.observe({ kind }, waitedMs / 1000),
    retried: ({ operation }) => this.#retries.inc({ operation }),
    refused: ({ kind, reason }) => this.#refusals.inc({ kind, reason }),
    leftOut: () => this.#leftOut.inc(),
    storeUpdate: ({ result, tookMs }) => this.#storeSeconds.observe({ result }, tookMs / 1000),
  };

  /** @param planShare the percentage of the plan that petql uses at most. */
  constructor(clock: Clock, planShare: number) {
    this.#planShare = planShare;
    this.#lastHour = new LastHour(clock);
    // prom-client never ends its collection: each gateway with metrics leaves a timer behind.
    collectDefaultMetrics({ register: this.#register });

    this.#gauge('petql_build_info', 'Always 1; the version is a label.', ['version']).set({ version }, 1);
    // For Prometheus, a series that begins with 1 has not increased.
    for (const operation of UPSTREAM_OPERATIONS) {
      this.#calls.inc({ operation, status: '403', reason: 'forbidden' }, 0);
      this.#calls.inc({ operation, status: '429', reason: 'rate-limited' }, 0);
    }
    this.#operations.inc({ type: 'mutation', outcome: 'OUTCOME_UNKNOWN' }, 0);
    for (const type of ['query', 'mutation']) {
      for (const outcome of ALERTED_OUTCOMES) this.#operations.inc({ type, outcome }, 0);
    }
    for (const reason of ['QUOTA_EXHAUSTED', 'UPSTREAM_FAILED']) this.#stale.inc({ reason }, 0);
  }

  get contentType(): string {
    return this.#register.contentType;
  }

  /** Returns all metrics in Prometheus's text format. */
  async text(sources: AdminSources): Promise<string> {
    await this.#readSources(sources);
    return this.#register.metrics();
  }

  async totals(): Promise<Totals> {
    return {
      callsMade: await sumOf(this.#calls),
      callsSaved: await sumOf(this.#saved),
      refused: await sumOf(this.#operations, REFUSED),
      stale: await sumOf(this.#stale),
    };
  }

  /** Returns what this process did in each minute of the last hour, the current one last. */
  lastHour(): readonly Minute[] {
    return this.#lastHour.minutes();
  }

  async #readSources({ callers, health, replicas, http }: AdminSources): Promise<void> {
    const plans = new Map<string, PlanTotals>();
    let queued = 0;
    for await (const [caller, quota] of callers.quotas()) {
      queued += caller.queued;
      addQuota(quota, plans, this.#planShare);
    }

    // All are set in one turn, since another scrape may be under way.
    this.#setHttp(http);
    this.#setPlans(plans);
    this.#queued.set(queued);
    const { redis, isGetRouteWorking, pausedKeys, closed } = health();
    this.#paused.set(pausedKeys);
    if (redis === undefined) this.#redisUp.remove();
    else this.#redisUp.set(redis === 'connected' ? 1 : 0);
    this.#replicas.set(replicas.count);
    this.#closed.reset();
    for (const operation of CLOSABLE) this.#closed.set({ operation }, 0);
    for (const { operation, keys } of closed) this.#closed.set({ operation }, keys);
    this.#getRoute.set(isGetRouteWorking ? 1 : 0);
  }

  #setHttp(http: HttpCounts | undefined): void {
    this.#responses.reset();
    for (const [status, count] of http?.responses ?? []) this.#responses.inc({ status }, count);
    this.#dropped.reset();
    this.#dropped.inc(http?.droppedConnections ?? 0);
  }

  #setPlans(plans: ReadonlyMap<string, PlanTotals>): void {
    for (const gauge of [this.#callers, this.#limit, this.#remaining, this.#maxShare]) gauge.reset();
    for (const [plan, { keys, windows }] of plans) {
      this.#callers.set({ plan }, keys);
      for (const [window, sums] of windows) {
        this.#limit.set({ plan, window }, sums.limit);
        this.#remaining.set({ plan, window }, sums.remaining);
        this.#maxShare.set({ plan, window }, sums.maxShare);
      }
    }
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.#register] });
  }

  #histogram(name: string, help: string, labelNames: string[], buckets = SECONDS): Histogram {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#register] });
  }

  #gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.#register] });
  }
}

async function sumOf(counter: Counter, outcome?: string): Promise<number> {
  const { values } = await counter.get();
  const counted = values.filter(({ labels }) => outcome === undefined || labels['outcome'] === outcome);
  return counted.reduce((sum, { value }) => sum + value, 0);
}

/** Known statuses have their own label, others share one for each hundred: an upstream may respond with any number. */
function statusLabel(status: number | undefined): string {
  if (status === undefined) return 'none';
  return KNOWN_STATUSES.has(status) ? String(status) : `${Math.floor(status / 100)}xx`;
}
