/** Follows the clock of Redis, so that all replicas agree on the time. */
export class RedisClock {
  readonly #elapsedMs: () => number;
  /** Redis's clock minus the local one; undefined before the first reply. */
  #offsetMs: number | undefined;

  /** @param elapsedMs a monotonic clock, in milliseconds. */
  constructor(elapsedMs: () => number) {
    this.#elapsedMs = elapsedMs;
  }

  /** Whether a reply has shown the time of Redis. */
  get isSet(): boolean {
    return this.#offsetMs !== undefined;
  }

  /** Returns milliseconds since the Unix epoch, by this machine's clock before the first reply. */
  nowMs(): number {
    return Math.floor(this.#offsetMs === undefined ? Date.now() : this.#elapsedMs() + this.#offsetMs);
  }

  /** Keeps the offset within the bounds of each reply: Redis read its clock between `sentAtMs` and now. */
  adjust(redisMs: number, sentAtMs: number): void {
    const minMs = redisMs - this.#elapsedMs();
    const maxMs = redisMs + 1 - sentAtMs;
    this.#offsetMs = Math.min(Math.max(this.#offsetMs ?? minMs, minMs), maxMs);
  }
}
