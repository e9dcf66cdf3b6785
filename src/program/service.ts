import { constants } from 'node:os';

/** A program that serves until a signal stops it. */
export interface Service {
  readonly banner: string;
  readonly stop: (signal: NodeJS.Signals) => Promise<void>;
}

/** One Ctrl-C may come twice: from the terminal, and from npm, which passes it on. */
const SAME_SIGNAL_MS = 1_000;

/** Stops the service at the first signal. The second one ends the process at once. */
export function stopOnSignal(service: Service): void {
  let stoppingSinceMs: number | undefined;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    // The listeners of main.ts end the process.
    process.removeAllListeners(signal);
    process.on(signal, () => onSignal(signal));
  }

  function onSignal(signal: 'SIGINT' | 'SIGTERM'): void {
    if (stoppingSinceMs === undefined) {
      stoppingSinceMs = performance.now();
      void stop(service, signal);
      return;
    }
    const isSame = performance.now() - stoppingSinceMs < SAME_SIGNAL_MS;
    // The code is the one that shells use.
    if (!isSame) process.exit(128 + constants.signals[signal]);
  }
}

async function stop(service: Service, signal: NodeJS.Signals): Promise<void> {
  try {
    await service.stop(signal);
  } catch (error) {
    console.error(`petql: could not stop cleanly: ${oneLine(error)}`);
    process.exit(1);
  }
  process.exit(0);
}

/** Returns the message of an error for the terminal, where a carriage return in a value would hide what stands before it. */
export function oneLine(error: unknown): string {
  const message = String(error instanceof Error ? error.message : error).replaceAll('\n', ' ');
  // oxlint-disable-next-line no-control-regex -- these are what it shows
  return message.replaceAll(/[\0-\x1f]/g, (character) => JSON.stringify(character).slice(1, -1));
}
