import { z } from 'zod';
import type { Account } from './account.ts';

const count = z.int().nonnegative();
const time = z.number();
const window = z.object({
  limit: count.optional(),
  spent: z.record(z.string().regex(/^\d{1,10}$/), z.int().positive()),
  total: count,
  reset: z.object({ fromMs: time, byMs: time, id: z.number() }).optional(),
});
const ACCOUNT: z.ZodType<Account> = z.object({
  epoch: z.string(),
  granted: count,
  lastGrantAtMs: time,
  minute: window,
  day: window,
  configured: z.object({ perMinute: count, perDay: count, startedAtMs: time }).optional(),
  isPlanKnown: z.boolean(),
  successes: z.object({ count, sinceMs: time }),
  pause: z.object({
    isHalfOpen: z.boolean(),
    untilMs: time,
    probeUntilMs: time,
    incidents: count,
    incidentAtMs: time,
    isBan: z.boolean(),
  }),
});

export function encodeAccount(account: Account): string {
  return JSON.stringify(account);
}

/** @returns undefined for a text that is no account. */
export function decodeAccount(text: string): Account | undefined {
  try {
    return ACCOUNT.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
