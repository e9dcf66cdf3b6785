import type { Answer } from './open-api.ts';

/** A Date header and a reset may come from two machines. */
const CLOCK_DIFFERENCE_S = 5;
/** No plan has a longer window. */
const DAY_S = 86_400;

/** What in the rate-limit headers of an answer cannot be true of any plan, by the service's own clock. */
export function rateLimitProblems(answer: Answer): string[] {
  const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
    // A header that is missing is the OpenAPI file's to tell, and NaN compares as no problem.
    Number(answer.headers.get(`x-ratelimit-${name}`) ?? Number.NaN),
  ) as [number, number, number];
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

/** The service's clock, or where it sends none, ours. */
export function answeredAtMs({ headers }: Answer): number {
  const date = headers.get('date');
  return date === null ? Date.now() : Date.parse(date);
}
