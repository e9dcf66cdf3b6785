import { MAX_TRIES, pause, retryDelay } from './petql.ts';
import type { Operation, PetqlResult } from './petql.ts';

const ENDPOINT = 'http://127.0.0.1:4000/graphql';
const HEADERS = { 'content-type': 'application/json', authorization: 'Bearer demo-free' };

/** Sends an operation once, so creates too. */
export async function send<Data>(operation: Operation, signal: AbortSignal | null = null): Promise<PetqlResult<Data>> {
  const request = { method: 'POST', headers: HEADERS, body: JSON.stringify(operation), signal };
  const response = await fetch(ENDPOINT, request);
  return response.json() as Promise<PetqlResult<Data>>;
}

/** Sends a query, and again while it is limited. Shows each result: there may be data already. Abort the signal to leave. */
export async function read<Data>(query: Operation, show: (result: PetqlResult<Data>) => void, signal: AbortSignal) {
  for (let tries = 1; ; tries += 1) {
    const result = await send<Data>(query, signal);
    signal.throwIfAborted();
    show(result);
    const waitMs = retryDelay(result.errors);
    if (waitMs === undefined || tries === MAX_TRIES) return;
    await pause(waitMs, signal);
  }
}
