import type { HttpResponse } from './http-message.ts';

/** The state of a process for operators and load balancers. */
export interface Health {
  /** Whether petql takes no new operations, since it is about to stop. */
  readonly isDraining: boolean;
  /** `connecting`: it was not reached since the start. Undefined where none is configured. */
  readonly redis: 'unavailable' | 'connected' | 'connecting' | undefined;
  /** API keys that are paused at the moment, after a 429. */
  readonly pausedKeys: number;
  /** Whether the upstream's route for single pets works, by its last response; otherwise petql looks for ids in lists. */
  readonly isGetRouteWorking: boolean;
  /** What petql does not call for now, since it fails; `isLasting` where operators should look. */
  readonly closed: readonly { readonly operation: string; readonly keys: number; readonly isLasting: boolean }[];
  /** Whether the pet API does not accept the key that all clients use. */
  readonly isServerKeyRejected: boolean;
}

/** Whether the path is one of health, which spends nothing. */
export function isHealthPath(path: string): boolean {
  return path === '/health/live' || path === '/health/ready';
}

/**
 * The responses of `/health/live` and `/health/ready`; undefined for every other path.
 *
 * Ready means that operations run. When Redis goes they still do, within each process's share of the quota: that is shown and
 * does not take the process out of service, or all replicas would leave at once. A process that has not reached Redis makes no
 * call, so that a rollout with a wrong address of Redis stops.
 */
export function healthResponse(path: string, health: () => Health): HttpResponse | undefined {
  if (!isHealthPath(path)) return undefined;
  if (path === '/health/live') return json(200, { status: 'ok' });
  const { isDraining, redis, pausedKeys, isGetRouteWorking, closed, isServerKeyRejected } = health();
  const isDegraded = isServerKeyRejected || closed.some(({ isLasting }) => isLasting);
  const status = isDraining ? 'draining' : degradedIf(isDegraded, STATUS[redis ?? 'none']);
  return json(status === 'ok' || status === 'degraded' ? 200 : 503, {
    status,
    redis: redis ?? 'none',
    quota: QUOTA[redis ?? 'none'],
    upstream: {
      pausedKeys,
      getRoute: isGetRouteWorking,
      closed: closed.map(({ operation }) => operation),
      ...(isServerKeyRejected && { key: 'rejected' }),
    },
  });
}

function degradedIf(isDegraded: boolean, status: (typeof STATUS)[keyof typeof STATUS]): typeof status {
  return status === 'ok' && isDegraded ? 'degraded' : status;
}

const STATUS = { none: 'ok', connected: 'ok', unavailable: 'degraded', connecting: 'starting' } as const;
/** Whose quota is counted here: that of this process, of all replicas, this replica's part of it, or nobody's yet. */
const QUOTA = { none: 'local', connected: 'shared', unavailable: 'divided', connecting: 'unknown' } as const;

function json(status: number, body: object): HttpResponse {
  const headers = { 'cache-control': 'no-store', 'content-type': 'application/json' };
  return { status, headers, body: JSON.stringify(body) };
}
