/**
 * What the account of a key believes, and for how long. Windows and their slots of time stand in `slots.ts`.
 */

import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../common/plan.ts';

// When a used permit is free again.

/** The upstream may count a call this much later than its response says. */
export const GUARD_MS = 500;
/** A call may be made up to a second later than it might be, and its response takes half of one. */
export const LAP_GUARD_MS = 1_500;
/** A minute and a response: other replicas may use the rest of a minute in which the key was used. */
export const WHOLE_MINUTE_MS = 61_000;

// What a header names.

/** A reset, or a `Retry-After`, farther ahead than this is not a minute's. */
export const FAR_MS = 120_000;
/** A `Retry-After` above this is a minute's: calls that came too fast are let in sooner. */
export const BRIEF_MS = 10_000;
/** A reset is at most a window ahead: and by the seconds of its reset and Date, and once a year by the hour of a local day. */
export const MAX_AHEAD_MS = { minute: MINUTE_MS + 2_000, day: DAY_MS + HOUR_MS };
/** The told reset of the next day is later than this one's by more. */
export const HALF_DAY_S = 43_200;
/** A header alone holds a key no longer: then one call finds out. */
export const MAX_TOLD_MS = 600_000;
/** After a reset that has freed a part only, the next ones cast no doubt for a day. */
export const SLIDES_MS = DAY_MS;

// What a 429 asks for, or a ban.

/** The first pause where nothing says for how long: a limit of a second or ten is free again by then. */
export const FIRST_PAUSE_MS = 5_000;
/** Such pauses double up to this: more would use up the morning of a limit that nobody named. */
export const MAX_DOUBLED_PAUSE_MS = 900_000;
/** A probe that failed or got no response says less than a 429, so its pause is shorter. */
export const MAX_PROBE_PAUSE_MS = 120_000;
/** A ban is lifted in minutes or by hand: a minute is the first try. */
export const FIRST_BAN_PAUSE_MS = 60_000;
/** An operator who has a ban lifted waits no longer than this for the first call. */
export const MAX_BAN_PAUSE_MS = HOUR_MS;
/** No `Retry-After` is kept for longer than the longest window. */
export const MAX_PAUSE_MS = DAY_MS;

// What a 429 teaches.

/** A lesson holds for ten minutes at first, then twice as long each time that a 429 confirms it. */
export const FIRST_LESSON_MS = 600_000;
/** A lesson holds for so long at most: a quarter of the day. */
export const MAX_LESSON_MS = 6 * HOUR_MS;
/** A lesson that a success has ended is remembered for so long: its next 429 confirms it. */
export const LESSON_REMEMBERED_MS = DAY_MS;

// Trust.

/** A call without a response for so long gives its trial to the next one, and its place (`line/places.ts`). */
export const HANGS_AFTER_MS = 1_000;
/** The pause after a call by trust that got no response; it doubles from here. */
export const FIRST_LOST_MS = 1_000;
/** The pause after such calls in a row. */
export const MAX_LOST_MS = 60_000;
