import { version } from '../common/version.ts';
import { describeConfig, readConfig } from './config.ts';
import { oneLine } from './service.ts';
import type { Service } from './service.ts';
import { processSignals } from './signals.ts';

const USAGE = `Usage: petql [options]           GraphQL gateway over the pet API
       petql sandbox [options]   sandbox of the pet API, for development and tests
       petql simulate [options]  a day of your load on each rate plan
       petql hash-key            the hash that the log and /quota show of an API key: PET_API_KEY, or standard input

Options of petql (environment variable, default):
${describeConfig('gateway')}

A secret can be in a file: PET_API_KEY_FILE, REDIS_URL_FILE and KEY_SECRET_FILE name it.

Options of petql sandbox:
${describeConfig('sandbox')}`;

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`petql: ${oneLine(error)}\n`);
  process.exit(1);
}

async function main(args: readonly string[]): Promise<void> {
  if (args[0] === 'simulate') return runSimulation(args.slice(1));
  if (args.includes('--help') || args.includes('-h')) return console.log(USAGE);
  if (args.includes('--version')) return console.log(version);

  if (args[0] === 'hash-key') return printHash(args.slice(1));

  const isSandbox = args[0] === 'sandbox';
  const service = isSandbox ? await startSandbox(args.slice(1)) : await startGateway(args);
  processSignals.stopFirst(service.stop);
  // Last: a reader of the banner may stop petql at once. The log has it too, and what collects logs takes both outputs for it.
  const isCollected = process.env['NODE_ENV'] === 'production' && !process.stdout.isTTY;
  if (isSandbox || !isCollected) console.log(service.banner);
}

/** Loaded once the settings are right: the sandbox needs little of petql, and what is wrong is said at once. */
async function startGateway(args: readonly string[]): Promise<Service> {
  const config = readConfig('gateway', args, process.env);
  const { serveGateway } = await import('./serve-gateway.ts');
  return serveGateway(config);
}

async function startSandbox(args: readonly string[]): Promise<Service> {
  const config = readConfig('sandbox', args, process.env);
  const { serveSandbox } = await import('./serve-sandbox.ts');
  return serveSandbox(config);
}

/** Runs the simulation, which serves nothing and ends by itself. */
async function runSimulation(args: readonly string[]): Promise<void> {
  const { SIMULATE_USAGE, simulate } = await import('./simulate/simulate.ts');
  if (args.includes('--help') || args.includes('-h')) return console.log(SIMULATE_USAGE);
  await simulate(args);
}

async function printHash(args: readonly string[]): Promise<void> {
  const { hashKey } = await import('./hash-key.ts');
  console.log(await hashKey(args));
}
