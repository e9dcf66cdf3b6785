import { z } from 'zod';
import type { Slots } from './slots.ts';

const count = z.int().nonnegative();
const time = z.number();

/** Own permits, by the slot of time in which they are free again, ascending. */
const SLOTS = {
  slots: z.array(count),
  counts: z.array(z.int().positive()),
  /** The sum of the counts. */
  total: count,
};

/** What a 429 has taught: at which count, or how many calls a second, it came. */
const LESSON = z.object({
  to: z.number().positive(),
  /** When the last 429 of it came. */
  sinceMs: time,
  /** For how long it is counted by; 0 where a second 429 has to confirm it. */
  lastsMs: count,
  /** Whether a call beyond it has succeeded: it is remembered, and lasts longer the next time. */
  isOver: z.boolean().optional(),
});

/** What petql counts by in one window. */
const WINDOW = z.object({
  ...SLOTS,
  /** The limit in a header. */
  limit: count.optional(),
  /** Whether it is this window's for sure: published or configured, or no other window fits what headers say. */
  isSure: z.boolean().optional(),
  /** When a header described the window last, or may have. */
  toldAtMs: time.optional(),
  /** Calls of other clients, which only a header knows: void at `untilMs`. */
  foreign: z.object({ calls: z.int().positive(), untilMs: time }).optional(),
  /**
   * The reset in a header. It is a whole second there, so it lies between two moments. The id is the upstream's timestamp in
   * seconds, which differs from window to window. A guess is a day's, by a `Retry-After`.
   */
  reset: z.object({ fromMs: time, byMs: time, id: z.number(), isGuess: z.boolean().optional() }).optional(),
  /** Own permits from before a reset that is over, which count until a response or trust shows that it has freed them. */
  doubted: z.object({ ...SLOTS, fromMs: time, id: z.number(), isGuess: z.boolean().optional() }).optional(),
  /** Until then a reset that is over casts no doubt: one has freed a part only. */
  slidesUntilMs: time.optional(),
  /** Since when calls go beyond the count, by trust: a reset may have freed it, or its limit is not known. */
  beyondSinceMs: time.optional(),
  /** The limit that a 429 has taught. Version 0.3 had `lowered` in its place. */
  lesson: LESSON.optional(),
  /** How many own calls the calls of others leave, after a 429 that they caused: another burst of them is foreseen. */
  foreignLesson: LESSON.optional(),
});
const CONSISTENT_WINDOW = WINDOW.refine(
  (window) => isConsistent(window) && (!window.doubted || isConsistent(window.doubted)),
);

function isConsistent({ slots, counts, total }: Slots): boolean {
  return (
    slots.length === counts.length &&
    slots.every((slot, index) => slot > (slots[index - 1] ?? -1)) &&
    counts.reduce((sum, each) => sum + each, 0) === total
  );
}

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
  /** When the last permit was granted. */
  lastGrantAtMs: time,
  minute: CONSISTENT_WINDOW,
  day: CONSISTENT_WINDOW,
  /** The plan that the process which started last was configured with. */
  configured: z.object({ perMinute: count, perDay: count, startedAtMs: time }).optional(),
  /** How many calls may go before the next success proves more; undefined with full trust. */
  trust: z
    .object({
      sinceMs: time,
      /** Calls that may go now. */
      calls: count,
      /** Successes since then. */
      successes: count,
      /** Calls in a row that got no response. */
      lost: count,
      /** When one call may go although no success has proved it. */
      againAtMs: time,
    })
    .optional(),
  /** Calls a second, after 429s that neither minute nor day explains. Version 0.3 had `pace` in its place. */
  paceLesson: LESSON.optional(),
  /** Since when calls go faster than it, by trust. */
  fasterSinceMs: time.optional(),
  pause: z.object({
    untilMs: time,
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
export type Lesson = z.infer<typeof LESSON>;

/** The right to make one call, and what the account knew when it was granted. */
export interface Permit {
  readonly epoch: string;
  readonly grantedAtMs: number;
  /** How many permits were settled by then: the upstream had counted their calls, or they were never sent. */
  readonly settledBefore: number;
  readonly minuteSlot: number;
  readonly daySlot: number;
  /** Whether it was granted by trust, so that its success proves more. */
  readonly isTrial: boolean;
  /** Whether it is the probe after a 429: a 401 or 403 to it may be a ban. */
  readonly isProbe: boolean;
}
