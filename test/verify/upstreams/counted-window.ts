/** How a window lies: by the clock, from its first call on, or looking back from each call. */
export type Shape = 'first' | 'fixed' | 'sliding';

export interface WindowOptions {
  readonly shape: Shape;
  readonly lengthMs: number;
  /** How long after a multiple of its length a fixed window ends. Default 0. */
  readonly endsMs?: number;
  /** From then on fixed windows end so much later: the hour of a local day that summer time moves. */
  readonly moves?: Move | undefined;
}

export interface Move {
  readonly atMs: number;
  readonly byMs: number;
}

/** The calls that an upstream has counted in one window. Times never go back. */
export class CountedWindow {
  readonly #options: WindowOptions;
  /** Calls in the order of their times; those before `#first` have left the window. */
  #atMs: number[] = [];
  #first = 0;
  /** When a window began that begins with a call. */
  #begunAtMs = -Infinity;

  constructor(options: WindowOptions) {
    this.#options = options;
  }

  count(nowMs: number): void {
    this.#pass(nowMs);
    if (nowMs >= this.#begunAtMs + this.#options.lengthMs) this.#begunAtMs = nowMs;
    this.#atMs.push(nowMs);
  }

  /** Returns how many calls the window holds; of those, how many came `untilMs` at the latest. */
  used(nowMs: number, untilMs = Infinity): number {
    this.#pass(nowMs);
    let end = this.#atMs.length;
    while (end > this.#first && (this.#atMs[end - 1] as number) > untilMs) end -= 1;
    return end - this.#first;
  }

  /** Returns when the window ends; a sliding one when its first call leaves it. */
  resetAtMs(nowMs: number): number {
    const { lengthMs, shape } = this.#options;
    if (shape === 'sliding') return this.#freeAtMs(nowMs, 0);
    if (shape === 'first') return this.#beginMs(nowMs) + lengthMs;
    return this.#nextEndMs(nowMs);
  }

  /** Returns when a call is allowed again. More than one has to leave a sliding window whose limit went down. */
  freeAtMs(nowMs: number, limit: number): number {
    if (this.#options.shape !== 'sliding') return this.resetAtMs(nowMs);
    return this.#freeAtMs(nowMs, Math.max(0, this.used(nowMs) - limit));
  }

  #freeAtMs(nowMs: number, index: number): number {
    this.#pass(nowMs);
    return (this.#atMs[this.#first + index] ?? nowMs) + this.#options.lengthMs;
  }

  #pass(nowMs: number): void {
    const beginMs = this.#beginMs(nowMs);
    const isSliding = this.#options.shape === 'sliding';
    for (;;) {
      const atMs = this.#atMs[this.#first] ?? Infinity;
      if (isSliding ? atMs > beginMs : atMs >= beginMs) break;
      this.#first += 1;
    }
    if (this.#first < 10_000) return;
    this.#atMs = this.#atMs.slice(this.#first);
    this.#first = 0;
  }

  #beginMs(nowMs: number): number {
    const { lengthMs, shape } = this.#options;
    if (shape === 'sliding') return nowMs - lengthMs;
    if (shape === 'first') return nowMs >= this.#begunAtMs + lengthMs ? nowMs : this.#begunAtMs;
    let endMs = this.#endBefore(nowMs + 2 * lengthMs);
    while (endMs > nowMs) endMs = this.#endBefore(endMs - 1);
    return endMs;
  }

  #nextEndMs(nowMs: number): number {
    let endMs = this.#endBefore(nowMs + 2 * this.#options.lengthMs);
    for (let before = this.#endBefore(endMs - 1); before > nowMs; before = this.#endBefore(endMs - 1)) endMs = before;
    return endMs;
  }

  /** Returns the last end of a fixed window that is not after this time. */
  #endBefore(atMs: number): number {
    const { lengthMs, endsMs = 0, moves } = this.#options;
    const usual = atMs - ((((atMs - endsMs) % lengthMs) + lengthMs) % lengthMs);
    if (!moves) return usual;
    const moved = atMs - ((((atMs - endsMs - moves.byMs) % lengthMs) + lengthMs) % lengthMs);
    if (moved > moves.atMs) return moved;
    return usual <= moves.atMs ? usual : usual - lengthMs;
  }
}
