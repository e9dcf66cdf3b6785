import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import type { Answer, Operation } from './open-api.ts';

/** The pet API that is held against the contract. */
export interface TestedApi {
  /** Whether it makes its own choices where the contract leaves them open. */
  readonly isForeign: boolean;
  /** How many calls it received. */
  readonly calls: number;
  /**
   * Makes one call with the API key.
   *
   * @throws Error when the plan is exhausted; no call is made after that, since a key may be banned for it.
   */
  readonly send: (operation: Operation, call?: Call) => Promise<Answer>;
  readonly close: () => Promise<void>;
}

export interface Call {
  /** What stands for the `{petId}` of the path. */
  readonly petId?: string;
  /** With its question mark. */
  readonly query?: string;
  readonly body?: string;
  /** Another key than the right one; null for none. */
  readonly key?: string | null;
}

/**
 * Opens the pet API at PET_API_URL with the key in PET_API_KEY, or else a sandbox.
 *
 * @throws Error when only one of the two variables is set.
 */
export async function openTestedApi({ PET_API_URL: url, PET_API_KEY: key }: NodeJS.ProcessEnv): Promise<TestedApi> {
  if (Boolean(url) !== Boolean(key)) throw new Error('PET_API_URL and PET_API_KEY must both be set, or neither');
  if (url && key) return apiAt(url.replace(/\/+$/, ''), key, async () => {});
  const { listen, close } = createSandbox();
  return Object.assign(apiAt(await listen(), 'demo-free', close), { isForeign: false });
}

function apiAt(baseUrl: string, apiKey: string, close: () => Promise<void>): TestedApi {
  const state = { calls: 0 };
  let exhausted: Error | undefined;
  const send: TestedApi['send'] = async ({ method, path }, { petId = '', query = '', body, key = apiKey } = {}) => {
    if (exhausted) throw exhausted;
    state.calls += 1;
    const headers = {
      accept: 'application/json',
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const url = baseUrl + path.replace('{petId}', petId) + query;
    const content = body === undefined ? {} : { body };
    const response = await fetch(url, { method, redirect: 'manual', headers, ...content });
    if (response.status !== 429) {
      return { status: response.status, headers: response.headers, text: await response.text() };
    }
    const after = response.headers.get('retry-after') ?? 'not given';
    exhausted = new Error(`call ${state.calls}: the key's plan is exhausted; run this after Retry-After (${after})`);
    throw exhausted;
  };
  return Object.assign(state, { isForeign: true, send, close });
}

/** A Date header and a reset may come from two machines. */
const CLOCK_DIFFERENCE_S = 5;
/** No plan has a longer window. */
const DAY_S = 86_400;

/** What in the rate-limit headers cannot be true of any plan, by the pet API's own clock. */
export function rateLimitProblems(answer: Answer): string[] {
  // The OpenAPI file tells of a header that is missing, and NaN compares as no problem.
  const valueOf = (name: string) => Number(answer.headers.get(`x-ratelimit-${name}`) ?? NaN);
  const [limit, remaining, reset] = [valueOf('limit'), valueOf('remaining'), valueOf('reset')];
  const nowS = answeredAtMs(answer) / 1000;
  const problems: string[] = [];
  if (limit === 0 && answer.status !== 401) problems.push('X-RateLimit-Limit: expected more than 0 for a valid key');
  if (remaining > limit) problems.push(`X-RateLimit-Remaining: expected at most ${limit}, got ${remaining}`);
  if (reset < nowS - CLOCK_DIFFERENCE_S) problems.push(`X-RateLimit-Reset: expected no time past, got ${reset}`);
  if (reset > nowS + CLOCK_DIFFERENCE_S + DAY_S) {
    problems.push(`X-RateLimit-Reset: expected seconds since 1970, a day from now at most, got ${reset}`);
  }
  return problems;
}

/** By the pet API's clock, or where it sends none, ours. */
export function answeredAtMs({ headers }: Answer): number {
  const date = headers.get('date');
  return date === null ? Date.now() : Date.parse(date);
}
