/** Numbers from 0 to 1 that are the same for the same seed. */
export type Random = () => number;

/** Marsaglia's xorshift on 32 bits: chance enough for clients and delays, and small. */
export function createRandom(seed: number): Random {
  // Nearby seeds must not begin alike, and 0 would stay 0.
  let state = Math.imul(seed + 1, 0x9e3779b1) | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** A whole number from `low` to `high`, both included. */
export function between(random: Random, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1));
}
