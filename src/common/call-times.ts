/**
 * How long petql waits for calls of the pet API, and how long it believes what one of them has shown. The account of a key has its own
 * times, in `quota/account/times.ts`.
 */

import { DAY_MS, HOUR_MS } from './plan.ts';

// What a call has shown.

/** What was seen is believed for ten minutes: it outlives most faults, and what was misread costs minutes. */
export const EVIDENCE_MS = 600_000;
/** A list that lacks what gets have shown is doubted for longer at each time, up to this. */
export const MAX_LIST_DOUBT_MS = 6 * HOUR_MS;
/** How long a list may lag behind a create: many services read from replicas of their database. */
export const LAG_MS = 5_000;
/** A list that has shown a pet so lately says that its get has a route. */
export const SHOWN_BY_LIST_MS = 60_000;
/** What is closed for so long is nothing that passes by itself: operators should look. */
export const LASTING_MS = 120_000;
/** No call takes longer: ten minutes of `--upstream-timeout-ms`, and its connection. */
export const LONGEST_CALL_MS = 660_000;

// When a call that failed is tried again.

/** A node that restarts is back in a second. The pause doubles from here. */
export const FIRST_BACKOFF_MS = 1_000;
/** The pause doubles up to here; that of a closed API grows from there by a tenth of the time that it fails. */
export const DOUBLED_BACKOFF_MS = 30_000;
/** A longer pause saves few calls: four an hour are 96 of the 1,000 calls of a Free day. */
export const MAX_API_BACKOFF_MS = 900_000;
/** A `Retry-After` of one failed call is about that call, and holds it for no longer than its backoff would. */
export const MAX_RETRY_AFTER_MS = 30_000;
/** The mean pause before the first and the second early retry; there is no third. */
export const EARLY_RETRY_PAUSES_MS = [100, 400];
/** The pauses before further tries of a write for which there was no connection. */
export const CONNECT_PAUSES_MS = [100, 300, 1_000];
/** An early retry belongs to its try. */
export const TRIES_APART_MS = 1_000;

// What closes, and who finds out.

/** A success of another call while lists fail keeps the API open for so long: the longest pause of a list. */
export const HELD_OPEN_MS = 30_000;
/** How long a list that is due leaves the try to another call, which shows more. */
export const OTHERS_FIRST_MS = 5_000;
/** petql asks for lists of its own at this interval at most. */
export const ASK_LISTS_EVERY_MS = 500;
/** petql asks for pets that lists have shown at this interval at most: a Free minute has 60 calls. */
export const ASK_GETS_EVERY_MS = 60_000;
/** How long a 401 waits for a list that confirms it. */
export const MAX_DOUBT_MS = 1_000;
/** A key that the upstream has accepted before is rejected for so long at first: one node may have answered 401. */
export const FIRST_REJECTION_MS = 1_000;
/** Any other key is rejected for so long at first: it is made up, or mistyped. */
export const NEW_REJECTION_MS = 10_000;
/** A key that was corrected at the pet API works again within this. */
export const MAX_REJECTION_MS = 600_000;

// The line.

/** A claim for which there is a call is not late so soon: it waits for petql itself, and not for the quota. */
export const MAX_LATE_MS = 1_000;
/** Max time by which a refused call is told to return later than the first one. */
export const MAX_SPREAD_MS = 600_000;
/** A client that is told less would be back before a second has changed anything. */
export const MIN_RETURN_MS = 1_000;
/** As many clients without a name wait as were refused in so long; more are those that come back too early. */
export const CROWD_MS = 5_000;
/** While another replica's probe is in flight, petql reads the account again after this, then after twice this, and so on. */
export const FIRST_PROBE_POLL_MS = 20;
/** The pauses between these reads double up to here. */
export const MAX_PROBE_POLL_MS = 200;
/** After a 429 every second has room for as many calls as before it. */
export const PLACES_DOUBLE_EVERY_MS = 1_000;
/** A view of an account is too old to refuse by it: another replica may have got permits back since. */
export const OLD_VIEW_MS = 1_000;

// Lists that replicas share.

/** A look in the background follows the one before it by this. */
export const LOOK_EVERY_MS = 250;
/** A read waits for a look where the last one is older, so that another replica's write is seen within a second. */
export const MAX_BLIND_MS = 750;
/** Looks in the background of all callers begin together: writing to a connection costs more than a look. */
export const LOOK_TOGETHER_MS = 20;
/** A list is read where it is newer by this than the cached one: the clock of the store is an estimate. */
export const NEWER_MS = 250;
/** How long other replicas leave a refresh to the one that began it. */
export const REFRESH_LEASE_MS = 1_000;

// Accounts and creates in the store.

/** All permits of an account are free again after this: a day, and two hours for its slots and its leases. */
export const ACCOUNT_LIVES_MS = 26 * HOUR_MS;
/** After the timeout of a call without a response, the upstream may still count it for this long. */
export const LATE_COUNT_MS = 60_000;
/** A retry of a create with the same key is the same create for a day. */
export const RECORDS_LIVE_MS = DAY_MS;
/** The lease of a create has this much more than its wait for a connection and its call take: to store its outcome. */
export const OUTCOME_LEASE_MS = 2_000;
/** A create in flight is polled after this, then after twice this, and so on. */
export const FIRST_RECORD_POLL_MS = 20;
/** The pauses between these polls double up to here. */
export const MAX_RECORD_POLL_MS = 100;
/** Max wait of a response for the storing of its outcome. */
export const STORING_MS = 500;
/** The pause before an outcome is stored again. */
export const STORE_AGAIN_MS = 250;
/** How long petql tries to store an outcome while the store is unavailable. */
export const MAX_STORING_MS = 600_000;
/** Max wait of a response for the announcement of the write to other replicas. */
export const ANNOUNCING_MS = 500;
