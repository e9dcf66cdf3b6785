import type { Plan } from '../../src/plan.ts';
import type { RedisServer } from '../support/redis-server.ts';
import type { StrictPlanOptions } from '../throttle/strict-plan.ts';
import { askDayUsed } from './ask-day-used.ts';
import { checkHistory } from './check-history.ts';
import type { Arrival, ClientRequest, Tokens } from './history.ts';
import { between } from './random.ts';
import { startReplicas } from './replicas.ts';
import type { Replicas } from './replicas.ts';
import type { Bench, Findings } from './scenario.ts';
import { startStrictUpstream } from './strict-upstream.ts';
import type { StrictUpstream } from './strict-upstream.ts';
import { shareOf, usageOfFixed, usageOfSliding } from './usage.ts';
import type { Span } from './usage.ts';

/** Replicas of petql over a strict upstream, as most scenarios want them. */
export interface Trial {
  readonly upstream: StrictUpstream;
  readonly replicas: Replicas;
  readonly redis: RedisServer | undefined;
}

export interface TrialOptions {
  readonly plan: Plan & Pick<StrictPlanOptions, 'windows'>;
  readonly replicas: number;
  /** Default: there is a Redis where there is more than one replica. */
  readonly withRedis?: boolean;
  /** Where the replicas find Redis, if not where it is. */
  readonly redisUrl?: (redis: RedisServer) => Promise<string>;
  readonly upstreamAheadMs?: number;
  /** Default 5 to 40. */
  readonly latencyMs?: readonly [lowest: number, highest: number];
  readonly args?: readonly string[];
  readonly clocksAheadMs?: readonly number[];
}

export async function startTrial(bench: Bench, options: TrialOptions): Promise<Trial> {
  const { random } = bench;
  const { plan, replicas: count, withRedis = count > 1, latencyMs = [5, 40] } = options;
  const upstream = bench.use(
    await startStrictUpstream({
      plan: { ...plan, tells: 'minute' },
      // A window's end is never where another scenario has it, so that the machine is not asked for all at once.
      aheadMs: options.upstreamAheadMs ?? between(random, -30_000, 30_000),
      behaviour: { latencyMs: () => between(random, ...latencyMs) },
    }),
  );
  const redis = withRedis ? await bench.redis() : undefined;
  const redisUrl = redis && (await (options.redisUrl?.(redis) ?? redis.url));
  const { args = [], clocksAheadMs = [] } = options;
  const replicas = bench.use(await startReplicas({ count, upstreamUrl: upstream.url, redisUrl, args, clocksAheadMs }));
  // With their code loaded and their Redis found, as replicas are that a load balancer sends requests to.
  await Promise.all(replicas.endpoints.map((endpoint) => askDayUsed(endpoint(), 'nobody')));
  return { upstream, replicas, redis };
}

export interface Judged {
  readonly arrivals: readonly Arrival[];
  readonly requests?: readonly ClientRequest[];
  readonly tokens?: Tokens;
  readonly plan: TrialOptions['plan'];
  /** 429s that the goal allows. Default 0. */
  readonly mostRefusals?: number;
  /** Which share of what the windows of a span allow has to be used. Default: not measured. */
  readonly used?: { readonly span: Span; readonly key: string; readonly atLeast: number };
  readonly measured?: string;
  /** What else is wrong. */
  readonly problems?: readonly string[];
}

/** Holds what happened against the rules that every scenario has, and its own figures. */
export function judge(judged: Judged): Findings {
  const { arrivals, requests = [], tokens, plan, mostRefusals = 0, used, measured } = judged;
  const refusals = arrivals.filter(({ status }) => status === 429).length;
  const problems = [
    ...(judged.problems ?? []),
    ...checkHistory(
      { arrivals, requests, ...(tokens ? { tokens } : {}) },
      { ...plan, perMinute: plan.perMinute + mostRefusals, perDay: plan.perDay + mostRefusals },
    ),
  ];
  if (refusals > mostRefusals) problems.unshift(`${refusals} × 429, at most ${mostRefusals} expected`);
  const own = arrivals.filter(({ key }) => key === used?.key);
  const usageOf = plan.windows === 'fixed' ? usageOfFixed : usageOfSliding;
  const usage = used && usageOf(own, plan.perMinute, used.span);
  if (usage && shareOf(usage) < used.atLeast) {
    problems.unshift(`${(shareOf(usage) * 100).toFixed(1)} % used, at least ${used.atLeast * 100} % expected`);
  }
  return { usage, arrivals: arrivals.length, refusals, problems, ...(measured === undefined ? {} : { measured }) };
}

/** Settles at this moment of the upstream's clock. */
export async function untilUpstream(upstream: StrictUpstream, atMs: number): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, Math.max(0, atMs - upstream.now()));
  });
}

/** The next whole minute of the upstream's clock that is at least a second away. */
export function nextMinute(upstream: StrictUpstream): number {
  return Math.ceil((upstream.now() + 1_000) / 60_000) * 60_000;
}

/** An `upstreamAheadMs` with which a minute of the upstream's begins so long from now. */
export function aheadForMinuteIn(ms: number): number {
  return 60_000 - ((Date.now() + ms) % 60_000);
}
