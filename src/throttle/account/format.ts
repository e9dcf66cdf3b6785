import { z } from 'zod';

const count = z.int().nonnegative();
const time = z.number();
const WINDOW = z.object({
  /** The limit in a header. */
  limit: count.optional(),
  /** Used permits by the slot in which they are free again, ascending. */
  slots: z.array(count),
  counts: z.array(z.int().positive()),
  /** The sum of the counts. */
  total: count,
  /**
   * The reset in a header. It is a whole second there, so it lies between two moments. The id is the upstream's timestamp in
   * seconds, which differs from window to window.
   */
  reset: z.object({ fromMs: time, byMs: time, id: z.number() }).optional(),
});
const CONSISTENT_WINDOW = WINDOW.refine(
  ({ slots, counts, total }) =>
    slots.length === counts.length &&
    slots.every((slot, index) => slot > (slots[index - 1] ?? -1)) &&
    counts.reduce((sum, each) => sum + each, 0) === total,
);
export const ACCOUNT = z.object({
  /** A new one after a loss; a permit of another epoch lowers no count. */
  epoch: z.string(),
  /**
   * Whether the upstream has ever accepted the key: responded with a pet or a list of pets. Any other response may come before
   * it checks the key, or from a firewall.
   */
  isProven: z.boolean(),
  /** Permits ever granted. */
  granted: count,
  /** When the last permit was granted that was no probe, or the last probe that was answered. */
  lastGrantAtMs: time,
  minute: CONSISTENT_WINDOW,
  day: CONSISTENT_WINDOW,
  /** The plan that the process which started last was configured with. */
  configured: z.object({ perMinute: count, perDay: count, startedAtMs: time }).optional(),
  /** Whether a header has named the plan, rather than a guess. */
  isPlanKnown: z.boolean(),
  /** A limit that one call's headers made look like a minute's, and their reset; until another reset proves it. */
  minuteGuess: z.object({ limit: count, resetId: z.number() }).optional(),
  /** Successes with rate-limit headers since some time in the last twelve hours: a day cannot have counted fewer. */
  successes: z.object({ count, sinceMs: time }),
  pause: z.object({
    /** Whether only a probe may be sent, once the pause is over. */
    isHalfOpen: z.boolean(),
    untilMs: time,
    /** Until when a probe is under way. */
    probeUntilMs: time,
    /** Probes in a row that got no response. */
    lostProbes: count.optional(),
    /** 429s in a row, with probable bans and with probes after them that failed. */
    incidents: count,
    /** When the last of them came. */
    incidentAtMs: time,
    /** Whether it looks like a ban. */
    isBan: z.boolean(),
  }),
});

/** One API key's count with the upstream: how many calls of each window are used, by petql's own count. */
export type Account = z.infer<typeof ACCOUNT>;
export type WindowCount = z.infer<typeof WINDOW>;

export type WindowName = 'day' | 'minute';

/** The right to make one call, and what the account knew when it was granted. */
export interface Permit {
  readonly epoch: string;
  readonly grantedAtMs: number;
  /** How many permits were settled by then: the upstream had counted their calls, or they were never sent. */
  readonly settledBefore: number;
  readonly successesBefore: number;
  readonly minuteSlot: number;
  readonly daySlot: number;
  readonly isProbe: boolean;
  /** Whether it is the probe after a 429: a 401 or 403 to it may be a ban. */
  readonly isAfter429: boolean;
}
