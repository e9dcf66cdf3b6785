interface Timer {
  readonly number: number;
  atMs: number;
  /** Undefined where the timer fires once. */
  readonly everyMs: number | undefined;
  /** Undefined once the timer is cleared. */
  act: (() => void) | undefined;
}

/** Timers whose time stands still until one of them fires. */
export class VirtualTimers {
  #nowMs: number;
  /** Numbers that timers have had. */
  #count = 0;
  /** In order of time and number, the next one last. */
  readonly #timers: Timer[] = [];
  readonly #byNumber = new Map<number, Timer>();

  /** @param nowMs milliseconds since the Unix epoch. */
  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Whether a timer is due without any passing of time. */
  get isDue(): boolean {
    return (this.#findNext()?.atMs ?? Infinity) <= this.#nowMs;
  }

  /** Starts a timer, and returns a handle like that of Node. */
  start(act: () => void, ms: number, everyMs?: number) {
    this.#count += 1;
    const timer: Timer = { number: this.#count, atMs: this.#dueMs(ms), everyMs, act };
    this.#insert(timer);
    this.#byNumber.set(timer.number, timer);

    const handle = {
      ref: () => handle,
      unref: () => handle,
      hasRef: () => true,
      refresh: () => {
        this.#timers.splice(this.#timers.indexOf(timer), 1);
        timer.atMs = this.#dueMs(ms);
        this.#insert(timer);
        return handle;
      },
      [Symbol.toPrimitive]: () => timer.number,
    };
    return handle;
  }

  clear(handle: unknown): void {
    const timer = this.#byNumber.get(Number(handle));
    if (timer) this.#forget(timer);
  }

  /** Lets time pass without a timer, as while a process is blocked. */
  pass(ms: number): void {
    this.#nowMs += ms;
  }

  /** Lets the time of the next timer come. */
  fireNext(): void {
    const timer = this.#findNext();
    if (!timer) return;

    this.#timers.pop();
    this.#nowMs = Math.max(this.#nowMs, timer.atMs);
    const { act, everyMs } = timer;
    if (everyMs === undefined) this.#forget(timer);
    else this.#insert(Object.assign(timer, { atMs: this.#nowMs + everyMs }));
    act?.();
  }

  /** Returns the last one of the list, without those that were cleared. */
  #findNext(): Timer | undefined {
    while (this.#timers.length > 0 && !this.#timers.at(-1)?.act) this.#timers.pop();
    return this.#timers.at(-1);
  }

  #dueMs(ms: number): number {
    return this.#nowMs + Math.max(0, Math.trunc(ms || 0));
  }

  #insert(timer: Timer): void {
    let low = 0;
    for (let high = this.#timers.length; low < high;) {
      const middle = (low + high) >>> 1;
      const { atMs = 0, number = 0 } = this.#timers[middle] ?? {};
      const isLater = atMs > timer.atMs || (atMs === timer.atMs && number > timer.number);
      if (isLater) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
  }

  /** A timer that is cleared stays in its place until its time comes. */
  #forget(timer: Timer): void {
    this.#byNumber.delete(timer.number);
    timer.act = undefined;
  }
}
