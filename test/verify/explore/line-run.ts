import { FIRST_PROBE_POLL_MS, MAX_LATE_MS } from '../../../src/common/call-times.ts';
import type { LineAnswer } from '../../../src/line/line-call.ts';
import { startVirtualTime } from '../../../src/program/simulate/virtual-time.ts';
import type { VirtualTime } from '../../../src/program/simulate/virtual-time.ts';
import { WINDOWS, WINDOW_NAMES } from '../../../src/quota/account/slots.ts';
import { inFlight } from '../../../src/quota/account/window.ts';
import { maxOfVisitor } from '../../support/plan-rules.ts';
import { PetqlLine } from '../upstreams/petql-line.ts';
import type { Ended } from '../upstreams/petql-line.ts';
import { grantProblems, isAfter, pauseFrom } from './grants.ts';
import { WANTED, edgeOf, initialOf, placeOf, visitorOf } from './line-state.ts';
import type { Kind, LineOptions, LineState, Waiter } from './line-state.ts';
import { answerOf } from './upstream.ts';

const DELAY_MS = 500;
/** More than any way needs. */
const MAX_LOOKS = 200;
const NO_HEADERS = { limit: undefined, remaining: undefined, reset: undefined, dateMs: undefined };

/** One way through what may happen to a line, from its beginning, and what is wrong with it. */
export class LineRun implements Disposable {
  readonly state: LineState;
  readonly #options: LineOptions;
  readonly #time: VirtualTime;
  readonly #line: PetqlLine;
  readonly #leave = new Map<number, () => void>();
  readonly #respond = new Map<number, (answer: LineAnswer) => void>();
  #problems: string[] = [];
  #isStopped = false;

  static async start(options: LineOptions, way: readonly string[]): Promise<LineRun> {
    const run = new LineRun(options, await startVirtualTime(options.startMs));
    for (const action of way) await run.act(action);
    return run;
  }

  private constructor(options: LineOptions, time: VirtualTime) {
    const { perDay, perMinute, startMs } = options;
    const clock = { now: () => Date.now(), elapsed: () => Date.now() - startMs };
    const askForList = () => Promise.reject(new Error('petql asks for a list'));
    this.state = initialOf(options);
    this.#options = options;
    this.#time = time;
    this.#line = new PetqlLine({ perMinute, perDay, known: true }, clock, askForList);
  }

  /** Lets something happen. Returns what is wrong with what petql does. */
  async act(action: string): Promise<string[]> {
    const { state } = this;
    this.#problems = [];
    state.way.push(action);
    const [event = '', turns] = action.split('; ');
    const [verb, what = ''] = event.split(' ');
    const id = Number(what);
    if (verb === 'come') this.#come(what as Kind);
    else if (verb === 'leave') this.#removeWaiter(id, this.#leave.get(id));
    else if (verb === 'respond') this.#answer(id, 200);
    else if (verb === 'refuse') this.#answer(id, 429);
    else if (verb === 'pass') await this.#pass(action.endsWith('late'));
    else {
      state.isStopping = true;
      void this.#line.stop().then(() => (this.#isStopped = true));
    }

    if (turns === undefined) await this.#settle();
    else {
      state.left.races -= 1;
      state.unsettled.push(action);
      let left = Number.parseInt(turns);
      await this.#time.settle(() => (left -= 1) < 0);
    }
    state.account = this.#line.account ?? state.account;
    return this.#problems;
  }

  /** Answers all calls, and lets time pass until nobody waits. Returns what is wrong. */
  async end(): Promise<string[]> {
    this.#problems = [];
    await this.#settle();
    for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
      if (this.#problems.length > 0) return this.#problems;
      const { flying, isStopping, waiters } = this.state;
      const [call] = flying;
      if (!call && waiters.length === 0) return isStopping && !this.#isStopped ? ['petql never stops'] : [];
      await this.act(call ? `respond ${call.id}` : 'pass to the next edge');
    }
    return ['a waiter never ends'];
  }

  [Symbol.dispose](): void {
    this.#time[Symbol.dispose]();
  }

  #come(kind: Kind): void {
    const { left, nowMs, waiters } = this.state;
    const id = this.#options.arrivals - left.arrivals;
    left.arrivals -= 1;
    for (const other of waiters) other.isPromised &&= placeOf(other.kind) <= placeOf(kind);
    waiters.push({ id, kind, deadlineMs: nowMs + WANTED[kind].waitMs, isPromised: false });
    const fail = (error: unknown) => this.#problems.push(String(error));
    const waiter = { send: () => this.#send(id), end: (ended: Ended) => this.#end(id, ended), fail };
    this.#leave.set(id, this.#line.want(WANTED[kind], waiter));
  }

  #removeWaiter(id: number, leave?: () => void): Waiter | undefined {
    const { state } = this;
    const waiter = state.waiters.find((each) => each.id === id);
    state.waiters = state.waiters.filter((each) => each !== waiter);
    leave?.();
    return waiter;
  }

  #answer(id: number, status: 200 | 429): void {
    const { state } = this;
    const { retryAfterMs = 30_000 } = this.#options;
    const call = state.flying.find((each) => each.id === id);
    if (!call) return;
    call.isAnswered = true;
    if (status === 429) {
      state.left.limited -= 1;
      state.pause = pauseFrom(state.nowMs, retryAfterMs, state.pause);
      this.#excuse();
    } else if (isAfter(call, state.pause)) state.pause = undefined;
    const headers = { ...NO_HEADERS, retryAfterMs: status === 429 ? retryAfterMs : undefined };
    const answer = answerOf({ status, headers });
    this.#respond.get(id)?.({ ...answer, status, failure: undefined });
  }

  /** Between two edges nothing changes, so one look stands for those of each second. */
  async #pass(isLate: boolean): Promise<void> {
    this.#time.pass(edgeOf(this.state) - 1 - Date.now());
    await this.#time.settle();
    this.#time.pass(1 + (isLate ? DELAY_MS : 0));
    if (!isLate) return;
    this.state.left.delays -= 1;
    this.#excuse();
  }

  /** All waits may get longer. */
  #excuse(): void {
    for (const waiter of this.state.waiters) waiter.isPromised = false;
  }

  /** Lets petql end its work, and judges those that still wait. */
  async #settle(): Promise<void> {
    const { state } = this;
    await this.#time.settle();
    if (state.unsettled.length > 0) {
      // A refresh that came meanwhile may wait until petql reads the account again.
      this.#time.pass(FIRST_PROBE_POLL_MS);
      await this.#time.settle();
    }
    state.unsettled = [];
    state.nowMs = Date.now();

    let isBehindVisitor = false;
    for (const waiter of state.waiters) {
      const { deadlineMs, kind } = waiter;
      if (state.isStopping) this.#problems.push(`a ${kind} waits though petql stops`);
      if (kind === 'refresh') this.#problems.push('a refresh waits');
      if (state.nowMs > deadlineMs + MAX_LATE_MS) this.#problems.push(`a ${kind} waits too long`);
      // Background calls yield to all; a call that waits for another one of its visitor leaves its permit to those behind it.
      waiter.isPromised = kind !== 'background' && !isBehindVisitor;
      isBehindVisitor ||= visitorOf(kind) !== undefined;
    }
    const leased = inFlight(this.#line.account ?? state.account, state.nowMs);
    const unclear = `${leased} permits are leased, and ${state.flying.length} calls are in flight`;
    if (leased !== state.flying.length) this.#problems.push(unclear);
  }

  /** A call is sent: judges whether it is its turn. */
  #send(id: number): Promise<LineAnswer> {
    const { flying, pause } = this.state;
    const waiter = this.#removeWaiter(id);
    const { kind = 'read' } = waiter ?? {};
    const call = { id, kind, grantedAtMs: Date.now(), isAnswered: false };
    const others = this.state.waiters.map((other) => other.kind);
    const left = this.#options.perMinute - (this.#line.account?.minute.total ?? 0);
    const reserve = kind === 'background' ? Math.floor(this.#options.perMinute / 2) : 0;
    if (!waiter) this.#problems.push('a call is sent that nobody waits for');
    if (others.some((other) => placeOf(other) < placeOf(kind))) this.#problems.push(`a ${kind} before another call`);
    if (left < reserve) this.#problems.push('a background call takes the reserve');
    this.#problems.push(...grantProblems(pause, [call], flying));
    const visitor = visitorOf(kind);
    if (visitor !== undefined) this.#judgeShare(visitor, call.grantedAtMs);

    flying.push(call);
    const { promise, resolve } = Promise.withResolvers<LineAnswer>();
    this.#respond.set(id, resolve);
    return promise;
  }

  #judgeShare(visitor: string, nowMs: number): void {
    const { sent } = this.state;
    const limits = { minute: this.#options.perMinute, day: this.#options.perDay };
    sent.push({ visitor, atMs: nowMs });
    const own = sent.filter((call) => call.visitor === visitor);
    for (const name of WINDOW_NAMES) {
      const used = own.filter(({ atMs }) => atMs > nowMs - WINDOWS[name].lengthMs).length;
      if (used > maxOfVisitor(limits[name])) this.#problems.push(`a visitor gets more than its share of a ${name}`);
    }
  }

  /** A call, or the wait for it, ends: judges whether it may. */
  #end(id: number, ended: Ended): void {
    const { state } = this;
    if ('status' in ended) {
      const flying = state.flying.filter((call) => call.id !== id);
      if (flying.length === state.flying.length) this.#problems.push('a call ends twice');
      state.flying = flying;
      return;
    }
    const { deadlineMs, isPromised, kind } = this.#removeWaiter(id) ?? {};
    if ('staleBy' in ended) {
      if (kind !== 'refresh') this.#problems.push(`a ${kind} gets stale data`);
      return;
    }
    const { reason } = ended;
    const mayGo = reason === 'late' && Date.now() < Number(deadlineMs) + MAX_LATE_MS;
    const isBroken = isPromised && reason !== 'stopping' && reason !== 'visitor-share';
    if (kind === undefined && reason !== 'aborted') this.#problems.push('a wait ends twice');
    if (mayGo) this.#problems.push(`a ${kind} is refused though it may go`);
    if (isBroken) this.#problems.push(`a ${kind} is refused (${reason}) after it was let wait`);
  }
}
