import process from 'node:process';

/** Preloaded into every contestant: tells the bench what the process has used so far, and ends with it. */
process.on('message', (message) => {
  if (message !== 'usage') return;
  const { user, system } = process.cpuUsage();
  process.send?.({ kind: 'usage', cpuMicros: user + system, residentBytes: process.memoryUsage.rss() });
});
process.on('disconnect', () => process.exit());
process.channel?.unref();
