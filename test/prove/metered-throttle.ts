import { setTimeout } from 'node:timers/promises';
import { systemClock } from '../../src/clock.ts';
import type { Ledger } from '../../src/throttle/ledger.ts';
import { createThrottle } from '../../src/throttle/throttle.ts';
import type { Passage, Throttle } from '../../src/throttle/throttle.ts';
import { createUpstreamClock } from '../../src/throttle/upstream-clock.ts';
import type { UpstreamOutcome } from '../../src/upstream/pet-api.ts';
import type { StrictPlan } from '../throttle/strict-plan.ts';
import type { Arrival, Tokens } from './history.ts';

/** A throttle in this process, over a strict plan that is asked without a network, and whose tokens are counted. */
export interface MeteredThrottle {
  readonly throttle: Throttle;
  readonly arrivals: readonly Arrival[];
  /** What has become of the tokens; none has expired unless the throttle was closed without reporting it. */
  tokens(): Tokens;
  /** One call by name. */
  call(name: string, options: { readonly waitMs: number; readonly signal?: AbortSignal }): Promise<Passage<string>>;
}

export interface MeteredThrottleOptions {
  readonly key: string;
  readonly ledger: Ledger;
  readonly upstream: StrictPlan;
  /** How far the upstream's clock is ahead, in milliseconds. Default 0. */
  readonly aheadMs?: number;
  /** How long an answer takes, in milliseconds; 0, the default, is no timer at all. */
  readonly latencyMs?: () => number;
}

export function createMeteredThrottle(options: MeteredThrottleOptions): MeteredThrottle {
  const { key, ledger, upstream, aheadMs = 0, latencyMs = () => 0 } = options;
  const arrivals: Arrival[] = [];
  let granted = 0;
  let sent = 0;
  let returned = 0;
  const metered: Ledger = {
    async exchange(apiKey, exchange) {
      for (const { kind } of exchange.reports) {
        if (kind === 'returned') returned += 1;
        else sent += 1;
      }
      const standing = await ledger.exchange(apiKey, exchange);
      granted += standing.grants.length;
      return standing;
    },
    close: () => ledger.close(),
  };
  const throttle = createThrottle({
    apiKey: key,
    ledger: metered,
    upstreamClock: createUpstreamClock(systemClock),
    clock: systemClock,
  });
  return {
    throttle,
    arrivals,
    tokens: () => ({ granted, sent, returned, expired: 0 }),
    call: (name, { waitMs, signal }) =>
      throttle.pass({ kind: 'write', deadlineMs: systemClock.elapsed() + waitMs, signal }, async () => {
        const { atMs, status, headers } = upstream.arrive(Date.now() + aheadMs);
        const { retryAfterMs } = headers;
        const arrival: Arrival = { key, atMs, answeredAtMs: Infinity, method: 'POST', name, status, retryAfterMs };
        arrivals.push(arrival);
        const tookMs = latencyMs();
        if (tookMs > 0) await setTimeout(tookMs);
        arrival.answeredAtMs = Date.now() + aheadMs;
        return { outcome: OUTCOMES[status](name), sent: true, rateLimit: headers };
      }),
  };
}

const OUTCOMES = {
  200: (value: string): UpstreamOutcome<string> => ({ kind: 'ok', value }),
  403: (): UpstreamOutcome<string> => ({ kind: 'forbidden' }),
  429: (): UpstreamOutcome<string> => ({ kind: 'rate-limited' }),
};
