import type { Random } from './random.ts';

/** What goes wrong with one exchange on its way. The parts can be combined. */
export interface WireFault {
  /** All bytes wait so long, each way. */
  readonly latencyMs?: number;
  /** The response comes no faster than this; below 20, byte by byte. */
  readonly bytesPerSecond?: number;
  /** The connection is closed after so many bytes of the response. */
  readonly cutAfterBytes?: number;
  /**
   * The connection is reset: before the request is passed on, when there is a response and none of it has been passed on,
   * in the middle of its headers, or right behind them.
   */
  readonly resetAt?: 'answer' | 'body' | 'headers' | 'request';
  /** The connection stands and nothing comes: the request is lost on its way, or its response is. */
  readonly silent?: 'answer' | 'request';
  /** The response's headers come, and then spaces for ever, as fast as they are taken. */
  readonly endless?: boolean;
  /** These bytes come instead of the response. */
  readonly bytes?: string;
}

/** Chooses among faults, each for its share of the exchanges; what is left of 1 goes well. */
export function mixedFaults<Fault>(
  random: Random,
  shares: readonly (readonly [share: number, fault: Fault])[],
): () => Fault | undefined {
  return () => {
    let left = random();
    return shares.find(([share]) => (left -= share) < 0)?.[1];
  };
}
