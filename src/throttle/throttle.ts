import type { Clock } from '../clock.ts';
import type { WaitEvent } from '../events.ts';
import { inTime } from '../time-limit.ts';
import type { UpstreamAnswer } from '../upstream/pet-api.ts';
import type { Permit } from './account.ts';
import { createCallQueue } from './call-queue.ts';
import { callEndOf } from './accounts.ts';
import type { Accounts, CallEnd } from './accounts.ts';
import { createPermitSource } from './permit-source.ts';
import { createRefused } from './refused.ts';
import type { Refused } from './refused.ts';

/** A request for one permit. */
interface CallRequest {
  readonly kind: 'read' | 'write';
  /** By `clock.elapsed()`. Infinity where `signal` ends the wait. */
  readonly deadlineMs: number;
  /** Aborts the wait. */
  readonly signal?: AbortSignal | undefined;
}

type CallResult<T> =
  | { readonly kind: 'answered'; readonly answer: UpstreamAnswer<T> }
  /** `send` returned undefined. */
  | { readonly kind: 'unused' }
  | Refused;

/** A call that waits. */
interface Waiter {
  readonly kind: CallRequest['kind'];
  readonly deadlineMs: number;
  /** Sends, and settles once the call is over. */
  use(permit: Permit): Promise<void>;
  refuse(refused: Refused): void;
  fail(error: unknown): void;
}

interface ThrottleOptions {
  readonly apiKey: string;
  readonly accounts: Accounts;
  readonly clock: Clock;
  /** Called when the outlook has changed. */
  onChange(): void;
  /** Called when a call is sent. */
  onSend(event: WaitEvent): void;
}

/** Calls at a time. */
const MAX_CONCURRENT = 50;
const MAX_WAITING = 1_000;
/** Max wait of a response for its settlement, and of a deadline for the account. */
const MAX_STORE_WAIT_MS = 100;

export type Throttle = ReturnType<typeof createThrottle>;

/** Sends the upstream calls of one API key within its plan. */
export function createThrottle(options: ThrottleOptions) {
  const { apiKey, accounts, clock } = options;
  const waiters = { write: new Set<Waiter>(), read: new Set<Waiter>() };
  /** Granted and unused: as many as in the queue's reservoir. */
  const permits: Permit[] = [];
  const queue = createCallQueue(MAX_CONCURRENT);
  let running = 0;
  let settling = 0;
  /** Whether a 429 came while permits were taken. */
  let isRefused = false;
  let stopping = false;
  const closed = Promise.withResolvers<void>();
  const source = createPermitSource({
    clock,
    take: (wanted) => accounts.take(apiKey, wanted),
    onTaken(taken) {
      permits.push(...taken);
      queue.addPermits(taken.length);
      // A permit that was granted before a refusal is not used after it.
      if (isRefused) giveBack(permits.length);
    },
    onFailure(error) {
      for (const waiter of allWaiters()) waiter.fail(error);
    },
    onOpen() {
      options.onChange();
      advance();
    },
  });

  return {
    /**
     * Waits for a permit and then sends. Writes go before reads, each in order of arrival.
     *
     * @param send returns undefined if there is nothing left to send: the permit is refunded.
     */
    pass: <T>(request: CallRequest, send: () => Promise<UpstreamAnswer<T>> | undefined) =>
      new Promise<CallResult<T>>((resolve, reject) => enter(request, send, { resolve, reject })),
    /** Returns the key's quota as this process saw it last; undefined before the first call. */
    quotaState: () => accounts.quotaState(apiKey),
    /** Whether the key is paused after a 429. */
    isPaused: () => (accounts.quotaState(apiKey)?.pausedForMs ?? 0) > 0,
    /** Whether a 401 or 403 may be a ban now: the last response was a 429, or such a rejection after one. */
    mayBeBanned: () => accounts.quotaState(apiKey)?.refusedLately ?? false,
    /** Returns the key's quota from the store. */
    refreshed: () => accounts.refresh(apiKey),
    /** Returns the minimum wait of a read with so many others before it, and its refusal if it cannot wait so long. */
    outlook(ahead: number) {
      const before = ahead + waiters.write.size - permits.length;
      return {
        waitMs: before < 0 ? 0 : accounts.minWait(apiKey, before).waitMs,
        refused: refusal('plan', Math.max(0, before)),
      };
    },
    /** Returns the refusal of a call with so many others before it. Default: with none. */
    refusal,
    waitingWrites: () => waiters.write.size,
    /** Refuses waiting and new calls, and resolves once the calls in flight are settled. */
    close(): Promise<void> {
      stopping = true;
      source.close();
      const refused = refusal('stopping');
      for (const waiter of allWaiters()) waiter.refuse(refused);
      advance();
      return closed.promise;
    },
  };

  function enter<T>(
    request: CallRequest,
    send: () => Promise<UpstreamAnswer<T>> | undefined,
    { resolve, reject }: { resolve(result: CallResult<T>): void; reject(error: unknown): void },
  ): void {
    const { kind, deadlineMs, signal } = request;
    if (stopping) return resolve(refusal('stopping'));
    if (signal?.aborted) return resolve(refusal('aborted'));
    const enteredAtMs = clock.elapsed();
    const leave = () => {
      waiters[kind].delete(waiter);
      clearTimeout(deadline);
      signal?.removeEventListener('abort', onAbort);
    };
    const waiter: Waiter = {
      kind,
      deadlineMs,
      refuse(refused) {
        leave();
        resolve(refused);
      },
      fail(error) {
        leave();
        reject(error);
      },
      async use(permit) {
        leave();
        const sentAtMs = clock.elapsed();
        try {
          const sending = send();
          if (!sending) {
            void settle(permit, { kind: 'unused' });
            return resolve({ kind: 'unused' });
          }
          options.onSend({ kind, waitedMs: sentAtMs - enteredAtMs });
          const answer = await sending;
          const settled = settle(
            permit,
            callEndOf(permit, answer, { tookMs: clock.elapsed() - sentAtMs, nowMs: clock.now() }),
          );
          // The client's next operation is counted after this call.
          await inTime(settled, MAX_STORE_WAIT_MS);
          resolve({ kind: 'answered', answer });
        } catch (error) {
          void settle(permit, { kind: 'lost' });
          reject(error);
        }
      },
    };
    const onAbort = () => {
      waiter.refuse(refusal('aborted'));
      advance();
    };
    const onDeadline = async () => {
      // A permit may be about to be granted, or a job about to start.
      await inTime(Promise.allSettled([source.taking]), MAX_STORE_WAIT_MS);
      const ahead = allWaiters().indexOf(waiter) - permits.length;
      if (ahead < 0) return;
      waiter.refuse(refusal(accounts.minWait(apiKey, ahead).waitMs > 0 ? 'plan' : 'late', ahead));
      advance();
    };
    const deadline =
      deadlineMs === Infinity ? undefined : setTimeout(() => void onDeadline(), Math.max(0, deadlineMs - enteredAtMs));
    signal?.addEventListener('abort', onAbort, { once: true });
    if (waiters.write.size + waiters.read.size >= MAX_WAITING) {
      // A write replaces the oldest read.
      const [replaced = waiter] = kind === 'write' ? waiters.read : [];
      replaced.refuse(refusal('crowded', MAX_WAITING));
      if (replaced === waiter) return;
    }
    waiters[kind].add(waiter);
    advance();
    // A call that is refused at once takes no place in the queue.
    if (waiters[kind].has(waiter)) queue.schedule(kind, () => run(waiter));
  }

  /** The queue has taken one permit from its reservoir for this waiter. */
  async function run(waiter: Waiter): Promise<void> {
    const isWaiting = waiters[waiter.kind].has(waiter);
    const permit = isWaiting ? permits.shift() : undefined;
    if (!permit) {
      // Bottleneck has no abort, so its permit is for the next job; or it was taken back meanwhile, and the reservoir is one short.
      queue.addPermits(1);
      if (isWaiting) queue.schedule(waiter.kind, () => run(waiter));
      return advance();
    }
    running += 1;
    await waiter.use(permit);
    running -= 1;
    advance();
  }

  /** Refuses calls whose wait would pass their deadline, and takes permits for the others. */
  function advance(): void {
    refuseHopeless();
    const waiting = waiters.write.size + waiters.read.size;
    giveBack(permits.length - waiting);
    // Only what can be sent at once: an unused permit is missing to other replicas.
    const wanted = Math.min(waiting, MAX_CONCURRENT - running) - permits.length;
    if (wanted <= 0 || source.taking) return settleClosed();
    isRefused = false;
    source.take(wanted);
  }

  function giveBack(count: number): void {
    if (count <= 0) return;
    const unused = permits.splice(-count);
    queue.addPermits(-unused.length);
    for (const permit of unused) void settle(permit, { kind: 'unused' });
  }

  /** Settles before the next permits are taken. */
  async function settle(permit: Permit, end: CallEnd): Promise<void> {
    if (end.kind === 'rate-limited') {
      isRefused = true;
      giveBack(permits.length);
    }
    settling += 1;
    // This may free permits.
    source.reopen();
    await accounts.settle(apiKey, permit, end);
    settling -= 1;
    options.onChange();
    advance();
  }

  function refuseHopeless(): void {
    const waiting = allWaiters();
    const nowMs = clock.elapsed();
    // The first waiters have a permit.
    let ahead = -permits.length;
    const earliestMs = Math.min(...waiting.map(({ deadlineMs }) => deadlineMs));
    const last = waiting.length + ahead - 1;
    // The last waiter waits longest.
    if (last < 0 || earliestMs === Infinity) return;
    if (nowMs + accounts.minWait(apiKey, last).waitMs <= earliestMs) return;
    for (const waiter of waiting) {
      const waitMs = ahead < 0 ? 0 : accounts.minWait(apiKey, ahead).waitMs;
      if (waitMs > 0 && nowMs + waitMs > waiter.deadlineMs) waiter.refuse(refusal('plan', ahead));
      else ahead += 1;
    }
  }

  function settleClosed(): void {
    const isBusy = source.taking !== undefined || running + settling + permits.length + allWaiters().length > 0;
    if (stopping && !isBusy) closed.resolve();
  }

  function allWaiters(): Waiter[] {
    return [...waiters.write, ...waiters.read];
  }

  function refusal(reason: Parameters<typeof createRefused>[0], ahead = 0): Refused {
    return createRefused(reason, accounts.minWait(apiKey, ahead), accounts.quotaState(apiKey), clock.now());
  }
}
