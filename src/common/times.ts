/**
 * How long petql itself takes and keeps things: connections, its store, what it remembers of callers, its end. Times of calls are in
 * `call-times.ts`, those that the account of a key believes in `quota/account/times.ts`.
 */

import { DAY_MS } from './plan.ts';

// Callers in memory.

/** A caller without a request is kept at least so long, whatever `--max-stale-ms` is: its line and its visitors are still warm. */
export const MIN_CALLER_IDLE_MS = 900_000;
/** A caller that has made calls is kept for a day: else its visitors' calls, and who used the quota today, would be forgotten. */
export const USED_CALLER_IDLE_MS = DAY_MS;
/** Often enough for times of minutes, and rare enough to cost nothing. */
export const PURGE_CALLERS_EVERY_MS = 60_000;
/** How often petql looks whether a caller that was evicted is in use: its calls may go on after their operation was aborted. */
export const RELEASE_CALLERS_EVERY_MS = 1_000;
/** Six steps an hour, so that an hour of consumers is as fine as the quota page shows it. */
export const CONSUMER_STEP_MS = 600_000;
/** A key that was refused within this time is still being refused, and gets no second warning. */
export const SAME_REFUSAL_MS = 600_000;
/** The time in which ten warnings about refused keys are written at most. */
export const REFUSAL_LINES_MS = 60_000;

// The log and the clock.

/** Minimum time between two warnings about one thing that comes and goes. */
export const WARN_EVERY_MS = 60_000;
/** A pipe that is full is tried again so soon: a reader that is slow for a moment loses no line. */
export const LOG_RETRY_MS = 20;
/** Where the wall clock is ahead of the steady one by more than this, nobody adjusted it: the machine was suspended. */
export const SUSPENDED_MS = 60_000;

// Clients of petql.

/** Longer than the minute for which most load balancers keep a connection, so that none closes under a request. */
export const CLIENT_KEEP_ALIVE_MS = 65_000;
/** A connection that has sent nothing is kept a little longer than a used one. */
export const CLIENT_IDLE_MS = 75_000;
/** A client on a bad network sends its headers within this. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** A body of the largest size that is allowed arrives within this on a slow phone. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** A connection is idle while its operation waits, so it times out this much after the longest wait. */
export const IDLE_BEYOND_WAIT_MS = 60_000;
/** A health check that takes longer has failed: Docker's own waits three seconds. */
export const HEALTH_TIMEOUT_MS = 2_000;

// The end of petql.

/** Docker kills a container ten seconds after SIGTERM. */
export const STOP_GRACE_MS = 7_000;
/** One Ctrl-C may come twice: from the terminal, and from npm, which passes it on. */
export const SAME_SIGNAL_MS = 1_000;
/** The wait for listeners of others that never say that they are done, while something holds the event loop. */
export const MAX_OTHER_LISTENERS_MS = 10_000;
/** How long the end of a gateway waits for calls in flight. */
export const CLOSE_AFTER_MS = 500;
/** How long it waits for the used quota to be stored. */
export const STORING_QUOTA_MS = 500;
/** How long it waits for outcomes of creates to be stored. */
export const STORING_OUTCOMES_MS = 1_000;

// The store.

/** Expired documents of this process are removed so often. */
export const SWEEP_EVERY_MS = 60_000;
/** A command of Redis takes a millisecond; one that takes this long has no working Redis behind it. */
export const REDIS_COMMAND_TIMEOUT_MS = 500;
/** A connection over TLS to another zone takes half of this. */
export const REDIS_CONNECT_TIMEOUT_MS = 2_000;
/** How often petql looks whether a connection to Redis is silent. */
export const REDIS_TICK_MS = 100;
/** Closes a connection without replies: a firewall may have dropped it, and TCP would take a quarter of an hour. */
export const REDIS_SILENCE_MS = 3_000;
/** ioredis waits so long for the end of a connection that it closes, also of one that is not there yet, before the process may end. */
export const REDIS_DISCONNECT_MS = 100;
/** Two writers that met wait a random part of this each before they compare again. */
export const MAX_COMPARE_PAUSE_MS = 10;
/** After a write, a replica gathers updates for so long for each compare that it lost. Longer, two replicas read more slowly. */
export const GATHER_MS = 25;
/** A read waits for its permit by no more than this, however many replicas write. */
export const MAX_GATHER_MS = 100;
/** What is no news for other replicas waits so long for the next update: clients on a fast network ask again within this. */
export const LATE_MS = 25;
/** The clock of Redis is read again after this, since two clocks drift by milliseconds at most meanwhile. */
export const REDIS_CLOCK_EVERY_MS = 500;
/** Replicas count each other by heartbeats. */
export const HEARTBEAT_MS = 1_000;
/** After this time without a heartbeat a replica has stopped. */
export const REPLICA_STOPPED_MS = 10_000;
/** The document of heartbeats outlives each of them. */
export const HEARTBEATS_LIVE_MS = 60_000;
/** The mark of a key secret outlives each document that was written with it. */
export const SECRET_LIVES_MS = 315_360_000_000;

// Connections to the pet API.

/** Shorter than `Keep-Alive` headers say: a firewall may drop an idle connection in silence. */
export const UPSTREAM_KEEP_ALIVE_MS = 4_000;
/**
 * A server may close an idle connection while a write is on its way, whose outcome is unknown then. Few do so within a second, where
 * they do not say when.
 */
export const KEEP_ALIVE_FOR_WRITES_MS = 500;
/** So long before the end that a `Keep-Alive` header names, a connection takes no more calls. */
export const KEEP_ALIVE_MARGIN_MS = 2_000;
/** A new connection goes where the host name points by now. */
export const MAX_CONNECTION_AGE_MS = 60_000;
/** How long an address is tried alone (RFC 8305, "Connection Attempt Delay"). */
export const ADDRESS_ALONE_MS = 250;
