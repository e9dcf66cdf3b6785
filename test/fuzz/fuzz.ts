/**
 * `npm run fuzz`: requests that nobody would send, until one of them breaks what must always hold; see subject.ts. It prints
 * the seed, how many answers there were of each kind, and the smallest request that breaks it.
 */
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { messages, wireBytes } from './messages.ts';
import { startSubject } from './subject.ts';

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '100000' },
    seed: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

const USAGE = `Usage: npm run fuzz -- [flags]
  --cases N   how many requests, one in ten of them as raw bytes (default 100000)
  --seed N    repeats what chance did (default: another one each time)`;

/** One request in so many comes as bytes over a connection of its own. */
const BYTES_ONE_IN = 10;
const TELL_EVERY = 10_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

if (values.help) process.stdout.write(`${USAGE}\n`);
else process.exitCode = await main();

async function main(): Promise<number> {
  const cases = Number(values.cases);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  process.stdout.write(`seed ${seed}, ${cases.toLocaleString('en')} cases\n`);
  let rejections = 0;
  process.on('unhandledRejection', (reason) => {
    rejections += 1;
    process.stdout.write(`unhandled rejection: ${String(reason instanceof Error ? reason.stack : reason)}\n`);
  });
  const subject = await startSubject();
  const raw = Math.floor(cases / BYTES_ONE_IN);
  let tried = 0;
  const told = () => {
    tried += 1;
    if (tried % TELL_EVERY > 0) return;
    collectGarbage();
    const megabytes = Math.round(process.memoryUsage().heapUsed / 1_000_000);
    process.stdout.write(`${tried.toLocaleString('en')} cases, ${megabytes} MB of heap\n`);
  };
  const where = fc.constantFrom('callers' as const, 'callers' as const, 'callers' as const, 'server' as const);
  const failures = [
    await reported(
      fc.check(
        fc.asyncProperty(messages, where, (message, side) => {
          told();
          return subject.tryMessage(message, side);
        }),
        { seed, numRuns: cases - raw },
      ),
    ),
    await reported(
      fc.check(
        fc.asyncProperty(wireBytes, (bytes) => {
          told();
          return subject.tryBytes(bytes);
        }),
        { seed, numRuns: raw },
      ),
    ),
  ].filter((failed) => failed);
  const kinds = [...subject.kinds].toSorted(([, one], [, other]) => other - one);
  const rows = kinds.map(([kind, answers]) => `${answers.toLocaleString('en').padStart(9)}  ${kind}`);
  process.stdout.write(
    `${rows.join('\n')}\n${subject.calls.toLocaleString('en').padStart(9)}  calls to the service\n` +
      (failures.length + rejections === 0 ? 'nothing broke\n' : ''),
  );
  await subject[Symbol.asyncDispose]();
  return failures.length + rejections === 0 ? 0 : 1;
}

async function reported<Case>(checked: Promise<fc.RunDetails<Case>>): Promise<boolean> {
  const details = await checked;
  if (!details.failed) return false;
  process.stdout.write(
    `after ${details.numRuns.toLocaleString('en')} cases and ${details.numShrinks} shrinks, repeated by ` +
      `{ seed: ${details.seed}, path: "${details.counterexamplePath}" }:\n`,
  );
  for (const part of [details.counterexample].flat()) process.stdout.write(`${shown(part)}\n`);
  const { errorInstance } = details;
  process.stdout.write(`${errorInstance instanceof Error ? errorInstance.stack : String(errorInstance)}\n`);
  return true;
}

function shown(part: unknown): string {
  return JSON.stringify(part, (_key, value: unknown) => {
    const { type, data } = (value ?? {}) as { type?: unknown; data?: number[] };
    return type === 'Buffer' && data ? Buffer.from(data).toString('latin1') : value;
  });
}
