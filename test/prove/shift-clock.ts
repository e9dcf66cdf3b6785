/** Loaded before petql: moves the wall clock of this one process, as a machine's wrong clock would be. */
const { now } = Date;
const aheadMs = Number(process.env['CLOCK_AHEAD_MS']);
Date.now = () => now() + aheadMs;
