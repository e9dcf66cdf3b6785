import type { Clock } from '../common/clock.ts';
import { HANGS_AFTER_MS } from '../quota/account/times.ts';
import type { Visitor } from '../quota/visitors.ts';
import { EVIDENCE_MS, PLACES_DOUBLE_EVERY_MS } from '../common/call-times.ts';

/** Calls of one key in flight at a time. */
export const MAX_IN_FLIGHT = 50;
/** A burst into a limit that nobody has told costs as many 429s as calls were in flight. */
const FIRST_PLACES = 8;
/** A plan of many calls a minute gets this part of them. */
const SHARE_OF_MINUTE = 1 / 20;

interface CallInFlight {
  readonly visitor: Visitor;
  readonly sentAtMs: number;
}

/**
 * How many calls of one key may be in flight in this process: little at once, until it has worked. When all places were taken and as
 * many calls have succeeded since, they double; a 429 sets them back.
 */
export class Places {
  readonly #clock: Clock;
  /** In the order in which they were sent. */
  readonly #calls: CallInFlight[] = [];
  /** What successes have proved; 0 before. */
  #proven = 0;
  /** Successes since all places were taken; undefined while they were not. */
  #successes: number | undefined;
  /** By `clock.elapsed()`. */
  #lastFullAtMs = -Infinity;
  #doubledAtMs = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many calls are in flight. */
  get taken(): number {
    return this.#calls.length;
  }

  /** Returns how many more calls may be in flight. */
  spare(minuteLimit: number): number {
    return Math.min(this.#count(minuteLimit) - this.#answering, MAX_IN_FLIGHT - this.#calls.length);
  }

  /** When a call that is in flight hangs, and gives its place to the next one, by `clock.elapsed()`; Infinity where none may. */
  get nextHangsAtMs(): number {
    const nowMs = this.#clock.elapsed();
    for (const { sentAtMs } of this.#calls) {
      if (sentAtMs + HANGS_AFTER_MS > nowMs) return sentAtMs + HANGS_AFTER_MS;
    }
    return Infinity;
  }

  /**
   * Whether a visitor may have one more call in flight: half of the places that the others leave.
   *
   * @param own calls of the visitor that are to be sent before it.
   * @param others the same of the others.
   * @param spare how many more calls may be in flight.
   */
  hasPlace(visitor: Visitor, { own, others, spare }: { own: number; others: number; spare: number }): boolean {
    if (visitor === undefined) return true;
    let ownTaken = own;
    for (const call of this.#calls) if (call.visitor === visitor) ownTaken += 1;
    const othersTaken = others + own + this.#calls.length - ownTaken;
    return ownTaken === 0 || 2 * ownTaken < this.#calls.length + spare - othersTaken;
  }

  /** Takes a place. Returns the function that frees it. */
  occupy(visitor: Visitor, minuteLimit: number): () => void {
    const call = { visitor, sentAtMs: this.#clock.elapsed() };
    if (!this.#isProven) this.reset();
    this.#calls.push(call);
    if (this.#answering >= this.#count(minuteLimit)) {
      this.#successes ??= 0;
      this.#lastFullAtMs = call.sentAtMs;
    }
    return () => void this.#calls.splice(this.#calls.indexOf(call), 1);
  }

  recordSuccess(minuteLimit: number): void {
    if (this.#successes === undefined) return;
    this.#successes += 1;
    const nowMs = this.#clock.elapsed();
    const places = this.#count(minuteLimit);
    if (this.#successes < places || nowMs < this.#doubledAtMs + PLACES_DOUBLE_EVERY_MS) return;
    this.#proven = 2 * places;
    this.#successes = undefined;
    this.#doubledAtMs = nowMs;
  }

  /** Begins anew after a 429. */
  reset(): void {
    this.#proven = 0;
    this.#successes = undefined;
  }

  /** The calls that were sent a short while ago. */
  get #answering(): number {
    const sinceMs = this.#clock.elapsed() - HANGS_AFTER_MS;
    let count = this.#calls.length;
    for (const { sentAtMs } of this.#calls) {
      if (sentAtMs > sinceMs) break;
      count -= 1;
    }
    return count;
  }

  get #isProven(): boolean {
    return this.#clock.elapsed() < this.#lastFullAtMs + EVIDENCE_MS;
  }

  #count(minuteLimit: number): number {
    const firstPlaces = Math.max(FIRST_PLACES, Math.ceil(minuteLimit * SHARE_OF_MINUTE));
    return Math.min(MAX_IN_FLIGHT, Math.max(firstPlaces, this.#isProven ? this.#proven : 0));
  }
}
