import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { BudgetView } from '../caller/budget.ts';
import type { CallerView } from '../caller/callers.ts';
import type { Events } from '../events.ts';
import { PLANS, planName } from '../plan.ts';
import type { Health } from '../server/health.ts';
import { FIGURES } from './figure-names.ts';
import type { Figure, FigureName } from './figure-names.ts';
import { createProcessFigures } from './process-figures.ts';

/** The one place that knows prom-client: what is counted, under which names. Labels are few and never a caller's. */
export interface Metrics extends Events {
  /** All of it, in Prometheus's text format. */
  text(): Promise<string>;
  readonly contentType: string;
  /** Ends what watches the process. What was counted can still be read. */
  close(): void;
}

/** What is looked up when it is asked for, rather than counted. */
export interface MetricsSources {
  views(): readonly CallerView[];
  health(): Health;
  replicas(): number;
}

export function createMetrics({ views, health, replicas }: MetricsSources): Metrics {
  const register = new Registry();
  const registers = [register];
  const collections = new Histogram({
    name: 'nodejs_gc_duration_seconds',
    help: 'Garbage collection duration by kind, one of major, minor, incremental or weakcb.',
    labelNames: ['kind'],
    buckets: [0.001, 0.01, 0.1, 1, 2, 5],
    registers,
  });
  const ofProcess = createProcessFigures((kind, tookS) => collections.observe({ kind }, tookS));
  const figures = new Map<FigureName, Counter | Gauge>();
  for (const [name, figure] of Object.entries<Figure>(FIGURES)) if (figure.labelNames) figureOf(name as FigureName);

  const operations = new Counter({
    name: 'petql_operations_total',
    help: 'Operations by type and by the code of their first error, or OK.',
    labelNames: ['type', 'outcome'],
    registers,
  });
  const operationSeconds = new Histogram({
    name: 'petql_operation_duration_seconds',
    help: 'How long operations took, waiting for the plan included.',
    labelNames: ['type'],
    buckets: SECONDS,
    registers,
  });
  const answerAge = new Histogram({
    name: 'petql_answer_age_seconds',
    help: 'The age of the oldest answer that an operation used.',
    buckets: [0.01, 0.1, 1, 5, 30, 60, 300, 600, 3600],
    registers,
  });
  const stale = new Counter({
    name: 'petql_stale_operations_total',
    help: 'Operations that were served older answers than they asked for, by reason.',
    labelNames: ['reason'],
    registers,
  });
  const saved = new Counter({
    name: 'petql_demands_without_call_total',
    help: 'Different things that operations asked for and that cost no call of their own, by why they did not.',
    labelNames: ['reason'],
    registers,
  });
  const calls = new Counter({
    name: 'petql_upstream_calls_total',
    help: 'Calls to the pet adoption service by operation, HTTP status (2xx, or none without a response) and what came of them.',
    labelNames: ['operation', 'status', 'reason'],
    registers,
  });
  const retries = new Counter({
    name: 'petql_upstream_retries_total',
    help: 'Calls among them that were made before and failed in a way that may pass.',
    labelNames: ['operation'],
    registers,
  });
  const callSeconds = new Histogram({
    name: 'petql_upstream_call_duration_seconds',
    help: 'How long those calls took.',
    labelNames: ['operation'],
    buckets: SECONDS,
    registers,
  });
  const waitSeconds = new Histogram({
    name: 'petql_wait_seconds',
    help: 'How long calls waited for their turn in the plan before they were sent.',
    labelNames: ['kind'],
    buckets: [0.001, 0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers,
  });
  const waiting = gauge('petql_waiting_calls', 'Calls that wait for their turn in the plan.');
  const callers = gauge('petql_callers', 'API keys that were called with and are remembered, by plan.', ['plan']);
  const gates = gauge('petql_gates_closed', 'API keys that nothing is called with at the moment, after a 429.');
  const limit = gauge('petql_budget_limit_calls', 'Calls that the windows hold, over all keys of a plan.', WINDOW);
  const left = gauge('petql_budget_remaining_calls', 'Calls left in the windows, over all keys of a plan.', WINDOW);
  const fullest = gauge('petql_budget_used_share_max', 'The used share of the fullest window, from 0 to 1.', WINDOW);
  const redisUp = gauge('petql_redis_up', 'Whether Redis does what it is asked; no sample where none is configured.');
  const together = gauge('petql_replicas', 'Processes that share the plan, as far as they are heard of.');
  const singleReads = gauge(
    'petql_single_reads_work',
    'Whether the service answers GET /pets/{petId}, as far as is known.',
  );

  return {
    contentType: register.contentType,
    operation({ type, outcome, tookMs, oldestAgeMs, staleReason }) {
      operations.inc({ type, outcome });
      operationSeconds.observe({ type }, tookMs / 1000);
      if (oldestAgeMs !== undefined) answerAge.observe(oldestAgeMs / 1000);
      if (staleReason !== undefined) stale.inc({ reason: staleReason });
    },
    saved: ({ reason, calls: count }) => saved.inc({ reason }, count),
    upstreamCall({ operation, status, reason, tookMs }) {
      calls.inc({ operation, status: statusLabel(status), reason });
      callSeconds.observe({ operation }, tookMs / 1000);
    },
    waited: ({ kind, waitedMs }) => waitSeconds.observe({ kind }, waitedMs / 1000),
    retried: ({ operation }) => retries.inc({ operation }),
    text() {
      lookUp();
      return register.metrics();
    },
    close: () => ofProcess.close(),
  };

  function gauge(name: string, help: string, labelNames: readonly string[] = []): Gauge {
    return new Gauge({ name, help, labelNames: [...labelNames], registers });
  }

  function lookUp(): void {
    lookAtProcess();
    for (const each of [callers, limit, left, fullest]) each.reset();
    const budgets = views().map(({ budget }) => budget);
    waiting.set(budgets.reduce((sum, { queued }) => sum + queued, 0));
    gates.set(budgets.filter(({ closedUntil }) => closedUntil).length);
    const shares = new Map<string, number>();
    for (const budget of budgets) addBudget(budget, shares);
    const { redis, singleReadsWork } = health();
    if (redis === undefined) redisUp.remove();
    else redisUp.set(redis === 'connected' ? 1 : 0);
    together.set(replicas());
    singleReads.set(singleReadsWork ? 1 : 0);
  }

  function lookAtProcess(): void {
    for (const figure of figures.values()) figure.reset();
    for (const { name, labels = {}, value } of ofProcess.read()) figureOf(name).inc(labels, value);
  }

  /** Made with its first value: without labels it would be 0 where the operating system tells nothing of it. */
  function figureOf(name: FigureName): Counter | Gauge {
    const known = figures.get(name);
    if (known) return known;
    const { help, labelNames = [], counts }: Figure = FIGURES[name];
    const shape = { name, help, labelNames: [...labelNames], registers };
    const figure = counts ? new Counter(shape) : new Gauge(shape);
    figures.set(name, figure);
    return figure;
  }

  function addBudget({ plan: name, windows }: BudgetView, shares: Map<string, number>): void {
    const plan = PLAN_NAMES.has(name) ? name : 'custom';
    callers.inc({ plan });
    for (const { window, ...calledOf } of windows) {
      const labels = { plan, window };
      limit.inc(labels, calledOf.limit);
      left.inc(labels, calledOf.remaining);
      const key = `${plan} ${window}`;
      const share = Math.max(shares.get(key) ?? 0, Math.min(1, calledOf.used / Math.max(1, calledOf.limit)));
      shares.set(key, share);
      fullest.set(labels, share);
    }
  }
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const WINDOW = ['plan', 'window'] as const;
const PLAN_NAMES: ReadonlySet<string> = new Set(Object.values(PLANS).map(planName));

/** The service may answer with any number; each that it is known to use is told apart, and the others by their hundred. */
function statusLabel(status: number | undefined): string {
  if (status === undefined) return 'none';
  return TOLD_APART.has(status) ? String(status) : `${Math.floor(status / 100)}xx`;
}

const TOLD_APART: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 408, 410, 429, 500, 502, 503, 504]);
