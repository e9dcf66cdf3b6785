/** What an operator, or what balances the load, asks for. */
export interface Health {
  /** Whether it takes no new operations, since it is about to stop. */
  readonly draining: boolean;
  /** Undefined where none is configured. */
  readonly redis: 'away' | 'connected' | undefined;
  /** Whether another process counts in the same Redis under another key secret, and so for itself. */
  readonly secretsDiffer: boolean;
  /** Callers with whose keys nothing is called at the moment, after a 429. */
  readonly gatesClosed: number;
  /** Whether the upstream answers for single animals, as far as is known; where not, ids are looked for in listings. */
  readonly singleReadsWork: boolean;
  /** When it stops to, in milliseconds since the epoch; undefined while that is half a year away or more. */
  readonly nearSunsetMs: number | undefined;
}

/**
 * The answers of `/health/live` and `/health/ready`; undefined for every other path.
 *
 * Ready means that operations are answered. Without Redis they still are, each process from a share of the plan that is
 * safe, so that is told and does not take the process out of service: with all of them gone, nobody would be answered.
 */
export function healthAnswer(path: string, health: () => Health): Response | undefined {
  if (path === '/health/live') return answer(200, { status: 'ok' });
  if (path !== '/health/ready') return undefined;
  const { draining, redis, secretsDiffer, gatesClosed, singleReadsWork, nearSunsetMs } = health();
  const alone = redis === 'away';
  const status = draining ? 'draining' : alone || secretsDiffer ? 'degraded' : 'ok';
  return answer(draining ? 503 : 200, {
    status,
    redis: redis ?? 'none',
    ledger: alone ? 'alone' : redis === undefined ? 'own' : secretsDiffer ? 'split' : 'shared',
    upstream: {
      gatesClosed,
      singleReads: singleReadsWork,
      ...(nearSunsetMs === undefined ? {} : { sunset: new Date(nearSunsetMs).toISOString() }),
    },
  });
}

function answer(status: number, body: object): Response {
  return Response.json(body, { status, headers: { 'cache-control': 'no-store' } });
}
