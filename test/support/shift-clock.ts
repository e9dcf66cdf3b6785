/**
 * Loaded before petql: moves the wall clock of this one process, as a machine's wrong clock would be. At each SIGUSR2 it
 * jumps by the next of `CLOCK_JUMPS_MS`, as when somebody sets it.
 */
const { now } = Date;
let aheadMs = Number(process.env['CLOCK_AHEAD_MS'] ?? 0);
const jumpsMs = (process.env['CLOCK_JUMPS_MS'] ?? '').split(',').map(Number);
Date.now = () => now() + aheadMs;
if (process.env['CLOCK_JUMPS_MS']) process.on('SIGUSR2', () => (aheadMs += jumpsMs.shift() ?? 0));
