import { constants } from 'node:os';
import { oneLine } from './service.ts';
import { systemClock } from '../common/clock.ts';
import { MAX_OTHER_LISTENERS_MS, SAME_SIGNAL_MS } from '../common/times.ts';

type Signal = (typeof SIGNALS)[number];
type Stop = (signal: Signal) => Promise<void>;
type SignalListener = (signal: Signal, number: number) => unknown;

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * The signals that end the process. It takes the listeners that others have by now, such as those of an OpenTelemetry SDK, and runs
 * them once petql has stopped: spans come until then, and many of them end the process.
 */
class ProcessSignals {
  readonly #others: ReadonlyMap<Signal, readonly SignalListener[]>;
  /** Undefined during the start. */
  #stop: Stop | undefined;
  #signalledAtMs: number | undefined;
  #isEnding = false;

  constructor() {
    this.#others = new Map(SIGNALS.map((signal) => [signal, process.rawListeners(signal) as SignalListener[]]));
    for (const signal of SIGNALS) {
      process.removeAllListeners(signal);
      // The first process of a container ignores signals that it does not listen for.
      process.on(signal, () => this.#receive(signal));
    }
  }

  /** Lets the first signal stop a service, and the second one end the process at once. */
  stopFirst(stop: Stop): void {
    this.#stop = stop;
  }

  #receive(signal: Signal): void {
    const isSame = systemClock.elapsed() - (this.#signalledAtMs ?? -Infinity) < SAME_SIGNAL_MS;
    if (isSame) return;

    const isFirst = this.#signalledAtMs === undefined;
    this.#signalledAtMs ??= systemClock.elapsed();
    if (isFirst && this.#stop) void this.#stopAndEnd(this.#stop, signal);
    // The code is the one that shells use.
    else void this.#end(128 + constants.signals[signal], signal);
  }

  async #stopAndEnd(stop: Stop, signal: Signal): Promise<void> {
    try {
      await stop(signal);
    } catch (error) {
      console.error(`petql: could not stop cleanly: ${oneLine(error)}`);
      return this.#end(1, signal);
    }
    return this.#end(0, signal);
  }

  /** Runs the listeners of others, once, and ends the process when they are done. */
  async #end(code: number, signal: Signal): Promise<void> {
    const others = this.#others.get(signal) ?? [];
    if (this.#isEnding || others.length === 0) process.exit(code);
    this.#isEnding = true;

    // Without a promise of theirs, they are done when nothing is left to do.
    process.exitCode = code;
    setTimeout(() => process.exit(code), MAX_OTHER_LISTENERS_MS).unref();
    const running = others.map((listener) => listener.call(process, signal, constants.signals[signal]));
    await Promise.all(running);
    if (running.every((result) => result instanceof Promise)) process.exit(code);
  }
}

export const processSignals = new ProcessSignals();
