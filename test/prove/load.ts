import { setTimeout } from 'node:timers/promises';
import type { ClientRequest, Settlement } from './history.ts';
import type { Random } from './random.ts';
import { between } from './random.ts';

/** Clients that each send one mutation after the other, so that they always want more than a plan allows. */
export interface Load {
  readonly requests: readonly ClientRequest[];
  /** Gives up what still waits, and settles once every request is settled. */
  stop(): Promise<void>;
}

export interface LoadOptions {
  /** Where a replica is to be found; asked anew for each request, since replicas are restarted. */
  readonly endpoints: readonly (() => string)[];
  readonly key: string;
  readonly clientsPerReplica: number;
  readonly random: Random;
  /** How long a request says that it can wait, in whole seconds. Default: 1 to 69, another for each request. */
  readonly waitSeconds?: () => number;
}

/** A client that was refused comes back when it was told to, but not later than this: it may have been told wrongly. */
const LONGEST_BREAK_MS = 20_000;
const AFTER_FAILURE_MS = 200;

export function startLoad(options: LoadOptions): Load {
  const { endpoints, key, clientsPerReplica, random, waitSeconds = () => between(random, 1, 69) } = options;
  const stopping = new AbortController();
  const requests: ClientRequest[] = [];
  const clients = endpoints.flatMap((endpoint) => Array.from({ length: clientsPerReplica }, () => runClient(endpoint)));
  return {
    requests,
    async stop() {
      stopping.abort();
      await Promise.all(clients);
    },
  };

  async function runClient(endpoint: () => string): Promise<void> {
    // Not all in the same moment: that is nobody's way to start.
    await pause(between(random, 0, 500));
    while (!stopping.signal.aborted) {
      const { outcome, retryAfterMs = AFTER_FAILURE_MS } = await send({
        endpoint: endpoint(),
        key,
        name: `${key} ${requests.length + 1}`,
        waitSeconds: waitSeconds(),
        signal: stopping.signal,
        requests,
      });
      if (outcome !== 'created') await pause(Math.min(retryAfterMs, LONGEST_BREAK_MS));
    }
  }

  async function pause(ms: number): Promise<void> {
    await setTimeout(ms, undefined, { signal: stopping.signal }).catch(() => {});
  }
}

export interface SendOptions {
  readonly endpoint: string;
  readonly key: string;
  readonly name: string;
  readonly waitSeconds: number;
  readonly signal?: AbortSignal;
  /** Where the request is written down. */
  readonly requests: ClientRequest[];
}

const ADD = 'mutation Add($name: String!) { createPet(input: { name: $name, categoryId: "1" }) { pet { id } } }';

/** Adds one animal over HTTP. Never rejects: what goes wrong is the settlement's outcome. */
export async function send({ endpoint, key, name, waitSeconds, signal, requests }: SendOptions): Promise<Settlement> {
  const request: ClientRequest = { key, name, startedMs: performance.now(), settlements: [] };
  requests.push(request);
  const settlement = await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
      prefer: `wait=${waitSeconds}`,
    },
    body: JSON.stringify({ query: ADD, variables: { name } }),
    signal: signal ?? null,
  }).then(
    async (response) => {
      const atMs = performance.now();
      return { ...settlementOf((await response.json()) as Answer), atMs };
    },
    () => ({ outcome: signal?.aborted ? ('aborted' as const) : ('unknown' as const), atMs: performance.now() }),
  );
  request.settlements.push(settlement);
  return settlement;
}

interface Answer {
  readonly data?: { readonly createPet?: { readonly pet: object | null } | null } | null;
  readonly errors?: readonly { readonly extensions?: { readonly code?: string; readonly retryAfterMs?: number } }[];
}

function settlementOf({ data, errors }: Answer): Omit<Settlement, 'atMs'> {
  if (data?.createPet?.pet) return { outcome: 'created' };
  const { code, retryAfterMs } = errors?.[0]?.extensions ?? {};
  if (code === 'RATE_LIMITED') return { outcome: 'refused', code, retryAfterMs };
  return { outcome: code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'failed', code };
}
