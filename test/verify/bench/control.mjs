import { subscribe } from 'node:diagnostics_channel';
import process from 'node:process';

/** Preloaded into each server of the bench: sends its port once it listens, and its CPU time for each message. */
subscribe('tracing:net.server.listen:asyncEnd', ({ server }) => process.send(server.address().port));
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send(user + system);
});
process.on('disconnect', () => process.exit());
process.channel.unref();
