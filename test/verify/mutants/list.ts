/** A defect: one rule of petql that is broken by one replacement in its source. */
export interface Mutant {
  /** Without spaces. */
  readonly name: string;
  /** The rule that it breaks. */
  readonly rule: string;
  /** It has to be in `src` exactly once. */
  readonly from: string;
  readonly to: string;
  /** A test file of another folder, or one that starts processes, where no other finds the defect. */
  readonly alsoRun?: string;
}

const throttle: readonly Mutant[] = [
  {
    name: 'no-guard',
    rule: 'a call counts half a second longer than a window',
    from: 'const GUARD_MS = 500;',
    to: 'const GUARD_MS = 0;',
  },
  {
    name: 'no-lease',
    rule: 'a call without a response counts until the end of its lease',
    from: "minuteSlot: slotFor('minute', nowMs + rules.leaseMs)",
    to: "minuteSlot: slotFor('minute', nowMs)",
  },
  {
    name: 'settled-at-grant',
    rule: 'a call counts for a window after its response',
    from: 'add(account[name], slotFor(name, nowMs), 1);',
    to: 'add(account[name], slotFor(name, permit.grantedAtMs), 1);',
  },
  {
    name: 'no-refund',
    rule: 'a permit whose call was not sent is refunded',
    from: '  if (permit.epoch !== account.epoch) return;\n  add(account.minute, permit.minuteSlot, -1);',
    to: '  return;\n  add(account.minute, permit.minuteSlot, -1);',
  },
  {
    name: 'old-quota-shown',
    rule: 'the headers of a quota are made anew once the quota has changed',
    from: '    this.#sweep(nowMs);\n    this.#viewed = undefined;',
    to: '    this.#sweep(nowMs);',
    alsoRun: 'api/rate-limit',
  },
  {
    name: 'old-headers-shown',
    rule: 'what a response says of the quota is shown at once',
    from: '  settle(apiKey: string, permit: Permit, end: CallEnd): undefined {\n    this.#viewed = undefined;',
    to: '  settle(apiKey: string, permit: Permit, end: CallEnd): undefined {',
    alsoRun: 'api/rate-limit',
  },
  {
    name: 'no-pause-growth',
    rule: 'pauses grow while the upstream answers 429',
    from: 'Math.min(MIN_BACKOFF_MS * 2 ** incidents, MAX_BACKOFF_MS)',
    to: 'MIN_BACKOFF_MS',
  },
  {
    name: 'no-retry-after',
    rule: 'nobody calls before the Retry-After of a 429',
    from: 'Math.max(response.retryAfterMs, backoffMs, ...resetsMs)',
    to: 'Math.max(backoffMs, ...resetsMs)',
  },
  {
    name: 'no-half-open',
    rule: 'a probe follows a pause',
    from: '  pause.isHalfOpen = true;\n  pause.probeUntilMs = 0;',
    to: '  pause.probeUntilMs = 0;',
  },
  {
    name: 'many-probes',
    rule: 'one probe at a time',
    from: 'if (isProbe && nowMs < pause.probeUntilMs)',
    to: 'if (false)',
  },
  {
    name: 'no-echo',
    rule: '429s of calls that were in flight together are one incident',
    from: 'const isEcho = permit.grantedAtMs <= pause.incidentAtMs;',
    to: 'const isEcho = false;',
  },
  {
    name: 'success-before-pause',
    rule: 'a call that was sent before a 429 does not end its pause',
    from: 'const isSentBeforePause = permit.grantedAtMs <= pause.incidentAtMs;',
    to: 'const isSentBeforePause = false;',
  },
  {
    name: 'failed-probe-is-no-refusal',
    rule: 'a probe after a 429 that fails is another refusal',
    from: 'const isOver = pause.incidents === 0 ||',
    to: 'const isOver = true ||',
  },
  {
    name: 'headers-forget-flights',
    rule: 'a header lowers the count only by what it may have seen',
    from: 'const excess = window.total - used - uncounted;',
    to: 'const excess = window.total - used;',
  },
  {
    name: 'others-not-counted',
    rule: 'calls of other clients count',
    from: 'if (missing > 0) add(',
    to: 'if (false) add(',
  },
  {
    name: 'no-ban',
    rule: 'a 401 or 403 to a probe after a 429 may be a ban',
    from: 'const mayBeBanned = isRejected && permit.isAfter429;',
    to: 'const mayBeBanned = false;',
  },
  {
    name: 'made-up-keys-stored',
    rule: 'the store keeps no account of a made-up key',
    from: 'if (account.isProven || nowMs < account.pause.untilMs) return true;',
    to: 'return true;',
  },
  {
    name: 'any-response-proves',
    rule: 'only a pet or a list of pets proves a key',
    from: "return kind === 'ok' && status !== 204 ? 'accepted' : 'other';",
    to: "return 'accepted';",
  },
  {
    name: 'unproven-without-end',
    rule: 'a process stores a thousand accounts of keys that are not proven',
    from: 'if (!this.#endsAtMs.has(id) && !this.hasRoom(nowMs)) return false;',
    to: '',
  },
  {
    name: 'any-day-begins',
    rule: 'only a calendar day is empty at its reset',
    from: 'return reset && isOnTheHour(reset.id) ? reset.byMs - nowMs : Infinity;',
    to: 'return reset ? reset.byMs - nowMs : Infinity;',
  },
  {
    name: 'removed-plan-stays',
    rule: 'a --plan that is removed is forgotten',
    from: '    account.configured = undefined;',
    to: '',
  },
  {
    name: 'clock-set-back',
    rule: 'a clock that is set back does not lengthen a window',
    from: 'if (nowMs < account.lastGrantAtMs) moveBack(window, latest);',
    to: '',
  },
  {
    name: 'certain-day',
    rule: 'a limit of 1,000 that resets far away is Free’s day',
    from: 'if (reset && reset.inMs > FAR_MS) return',
    to: 'if (false) return',
  },
  {
    name: 'no-restore',
    rule: 'what Redis has lost is restored',
    from: 'if (seen && hasLost(account, seen.account))',
    to: 'if (false)',
  },
  {
    name: 'lost-pause',
    rule: 'a pause that Redis has lost is restored',
    from: ' || found.pause.untilMs < seen.pause.untilMs',
    to: '',
  },
  {
    name: 'whole-share',
    rule: 'without Redis a replica uses its share of the plan',
    from: 'Math.floor(calls / divisor)',
    to: 'Math.floor(calls)',
  },
  {
    name: 'share-at-once',
    rule: 'a share begins a minute after the last call',
    from: 'if (seen.minute.total > 0) pause.untilMs',
    to: 'if (false) pause.untilMs',
  },
  {
    name: 'share-not-counted',
    rule: 'calls without Redis count once it is back',
    from: 'for (const slot of own[name].slots) add(',
    to: 'for (const slot of [] as number[]) add(',
  },
  {
    name: 'permits-used-after-429',
    rule: 'a permit that was granted before a 429 is not used after it',
    from: '      this.#hasMet429 = true;\n      this.#giveBack(this.#permits.length);',
    to: '      this.#hasMet429 = true;',
  },
  {
    name: 'told-one-moment',
    rule: 'refused calls are told times at which the plan has room for them',
    from: 'Math.max(0, ahead) + view.promised + before.refused',
    to: 'Math.max(0, ahead)',
  },
  {
    name: 'told-without-spread',
    rule: 'refused calls of one moment do not return in one moment',
    from: 'Math.max(MIN_RETRY_AFTER_MS, waitMs) + Math.random() * SECOND_MS',
    to: 'Math.max(MIN_RETRY_AFTER_MS, waitMs)',
  },
  {
    name: 'each-read-told',
    rule: 'all reads of a request are told one time',
    from: 'if (told.atMs > nowMs) return told.atMs - nowMs;',
    to: '',
  },
  {
    name: 'old-view-refuses',
    rule: 'nobody is refused by an old view',
    from: 'const isHopeless = !view.isOld && wait.waitMs > 0',
    to: 'const isHopeless = wait.waitMs > 0',
  },
  {
    name: 'old-view-refuses-visitors',
    rule: 'no visitor is refused by an old view',
    from: 'if (view.isOld && !call.needsBudget) return { verdict: LOOK, payer, ended };',
    to: '',
  },
  {
    name: 'visitors-not-charged',
    rule: 'a visitor uses no more calls than it leaves',
    from: 'this.visitors.charge(visitor, atMs);',
    to: '',
  },
  {
    name: 'visitors-not-refunded',
    rule: 'a call that was not sent is not charged to its visitor',
    from: 'this.visitors.refund(visitor, atMs);',
    to: '',
    alsoRun: 'api/visitors',
  },
  {
    name: 'share-of-one-replica',
    rule: 'a visitor has one share over all replicas',
    from: 'used * replicas < remaining',
    to: 'used < remaining',
  },
  {
    name: 'late-though-it-may-go',
    rule: 'a call that may go is not refused for the delay of petql itself',
    from: 'return deadlineMs + (mayGo ? MAX_LATE_MS : MOMENT_MS);',
    to: 'return deadlineMs + MOMENT_MS;',
  },
  {
    name: 'open-without-spread',
    rule: 'calls that a pause or a used-up day keeps waiting return one minute after the other',
    from: 'const waitMs = Math.max(opensInMs + spreadMs, minuteMs);',
    to: 'const waitMs = Math.max(opensInMs, minuteMs);',
  },
  {
    name: 'background-takes-all',
    rule: 'background calls leave a reserve to others',
    from: 'const isHeldBack = reserveWait.waitMs > quotaWait.waitMs;',
    to: 'const isHeldBack = false;',
  },
  {
    name: 'background-first',
    rule: 'background calls stand behind all others',
    from: '[...wanted.filter((call) => !isBackground(call)), ...yielding]',
    to: '[...yielding, ...wanted.filter((call) => !isBackground(call))]',
  },
  {
    name: 'guess-beats-plan',
    rule: 'a configured plan wins over a guess',
    from: 'return isConfigured ? { ...other(), minuteGuess } : ',
    to: 'return ',
  },
  {
    name: 'guess-without-proof',
    rule: 'a guess lets two calls go for each that proves it',
    from: 'minute: Math.min(limits.minute, assumed.perMinute + 2 * (proved + 1))',
    to: 'minute: limits.minute',
  },
  {
    name: 'probes-without-backoff',
    rule: 'probes that get no response back off',
    from: 'Math.min(firstMs * 2 ** lost, MAX_PROBE_PAUSE_MS)',
    to: 'firstMs',
  },
  {
    name: 'reads-first',
    rule: 'writes go before reads',
    from: '[...writes, ...reads]',
    to: '[...reads, ...writes]',
  },
  {
    name: 'hopeless-writes-wait',
    rule: 'a call that cannot be sent in time is refused at once',
    from: 'if (!isLate && !isHopeless) return undefined;',
    to: 'if (!isLate) return undefined;',
  },
  {
    name: 'no-crowd',
    rule: '1,000 reads of a key wait, and no more',
    from: 'const isCrowded = !this.#reads.has(key) && this.#reads.size >= MAX_PENDING;',
    to: 'const isCrowded = false;',
  },
  {
    name: 'ban-rejects-key',
    rule: 'a 401 right after a 429 does not reject the key',
    from: "const isRejected = meaning === 'unauthenticated' && !quota.isAfter429;",
    to: "const isRejected = meaning === 'unauthenticated';",
  },
];

const redis: readonly Mutant[] = [
  {
    name: 'no-compare',
    rule: 'a write of another replica is never overwritten',
    from: 'this.#compareAndSet(name, versionOf(seen), stored, ttlMs)',
    to: 'this.#compareAndSet(name, ANY_VERSION, stored, ttlMs)',
  },
  {
    name: 'pet-apis-mixed',
    rule: 'nothing crosses from one pet API to another',
    from: 'const baseUrl = origin + pathname',
    to: "const baseUrl = '' + ''",
  },
  {
    name: 'lone-replica',
    rule: 'replicas are counted by their heartbeats',
    from: 'count: Object.keys(beats).length',
    to: 'count: 1',
  },
  {
    name: 'old-shared-list',
    rule: 'a shared list from before a write is not used',
    from: 'if (shared?.version !== this.#version || ',
    to: 'if (!shared || ',
  },
  {
    name: 'foreign-write-unseen',
    rule: 'a write of another replica is seen',
    from: '    this.#version = index.version;\n    this.#cache.invalidate();',
    to: '    this.#version = index.version;',
  },
  {
    name: 'every-replica-refreshes',
    rule: 'one replica refreshes a list',
    from: 'return isLeased(this.#index, list, store.nowMs()) && this.#index.refreshes[list]?.by !== replica;',
    to: 'return false;',
  },
];

const reads: readonly Mutant[] = [
  {
    name: 'no-generation',
    rule: 'a read sees the writes before it',
    from: 'return generation >= this.generation && sentAtMs >= this.notBeforeMs;',
    to: 'return sentAtMs >= this.notBeforeMs;',
  },
  {
    name: 'no-send-time',
    rule: 'no-cache accepts no call that was sent before it',
    from: 'return generation >= this.generation && sentAtMs >= this.notBeforeMs;',
    to: 'return generation >= this.generation;',
  },
  {
    name: 'any-list-is-complete',
    rule: 'only a complete list of all pets answers the others',
    from: '  if (list.complete) {\n    for (const [name, shown] of narrowerLists',
    to: '  {\n    for (const [name, shown] of narrowerLists',
  },
  {
    name: 'absence-by-any-list',
    rule: 'only a complete list proves that there is no such pet',
    from: '(call === ALL_PETS && isComplete) ? null',
    to: 'call === ALL_PETS ? null',
  },
  {
    name: 'cache-before-write',
    rule: 'nothing from before a write is served',
    from: 'if (!stored || stored.generation < fromGeneration) continue;',
    to: 'if (!stored) continue;',
  },
  {
    name: 'stale-for-ever',
    rule: 'nothing older than max-stale is served',
    from: 'return ageMs <= Math.max(maxAgeMs, maxStaleMs) ?',
    to: 'return true ?',
  },
  {
    name: 'older-response-wins',
    rule: 'a response of an earlier call replaces no newer one',
    from: ' && before.snapshot.asOfMs > snapshot.asOfMs) return;',
    to: ' && false) return;',
  },
  {
    name: 'all-of-a-large-store',
    rule: 'the list of a large store is not called for other lists',
    from: "if (size === 'large' || !first) return false;",
    to: 'if (!first) return false;',
  },
  {
    name: 'no-list-of-all',
    rule: 'one list of all pets replaces several calls',
    from: "if (size === 'large' || !first) return false;",
    to: 'return false;',
  },
  {
    name: 'no-cover',
    rule: 'a list that has shown several wanted pets replaces their gets',
    from: 'for (const list of coverOf(pets, lists, facts)) lists.add(list);',
    to: '',
  },
  {
    name: 'get-after-sunset',
    rule: 'without the get route pets are looked up in lists',
    from: 'const others = facts.mayGet ? [read.key, ...LISTS] : LISTS;',
    to: 'const others = [read.key, ...LISTS];',
  },
  {
    name: 'no-coalescing',
    rule: 'a read that a call in flight may answer makes no call',
    from: 'if (!this.isCovered(waiter)) return true;',
    to: 'return true;',
  },
  {
    name: 'endless-refreshes',
    rule: 'refreshes leave the day’s quota to first reads and writes',
    from: 'return this.#quota.refreshTokens(this.quotaState) - calls >= Math.max(1, usedLately);',
    to: 'return true;',
  },
  {
    name: 'no-reserve',
    rule: 'the last of the day is not for refreshing',
    from: 'remaining - limit * RESERVED_SHARE',
    to: 'remaining',
  },
  {
    name: 'refreshes-not-refunded',
    rule: 'a refresh that was not sent costs the refresh budget nothing',
    from: 'this.#refreshBudget.refund();',
    to: '',
  },
  {
    name: 'no-backoff',
    rule: 'tries of a call that fails get rarer',
    from: 'return Math.min(Math.max(retryAfterMs, FIRST_BACKOFF_MS), MAX_BACKOFF_MS);',
    to: 'return 0 * retryAfterMs;',
  },
  {
    name: 'failed-lists-used',
    rule: 'a list that fails is not used to save calls',
    from: 'return !failed.isTransient || (failed.failures > 1 && (!hasData || failed.isAlone));',
    to: 'return false;',
  },
  {
    name: 'no-retry-budget',
    rule: 'retries are at most a tenth of the calls',
    from: 'const isRetriedEarly = earlyPauseMs !== undefined && takeRetry();',
    to: 'const isRetriedEarly = earlyPauseMs !== undefined;',
  },
  {
    name: 'calls-earn-no-retry',
    rule: 'ten calls earn a retry',
    from: 'if (!this.#call.isRetry) retryBudget.recordCall();',
    to: '',
  },
  {
    name: 'no-early-retry',
    rule: 'a read without data is retried',
    from: 'const isRetriedEarly = earlyPauseMs !== undefined && takeRetry();',
    to: 'const isRetriedEarly = false;',
  },
  {
    name: 'forbidden-data-stays',
    rule: 'what a key may not read any more is not served',
    from: "if (failure.kind === 'forbidden') this.#parts.cache.drop(key);",
    to: '',
  },
  {
    name: 'no-circuit-breaker',
    rule: 'a missing get route is probed once a minute',
    from: '(!this.#isBroken || this.#clock.elapsed() >= this.#probeAtMs)',
    to: 'true',
  },
  {
    name: 'no-sunset',
    rule: 'gets end before the sunset',
    from: 'return this.#clock.now() < SUNSET_MS - MARGIN_MS;',
    to: 'return true;',
  },
  {
    name: 'only-if-cached-calls',
    rule: 'only-if-cached makes no call',
    from: "const mayCall = !directives.has('only-if-cached');",
    to: 'const mayCall = true;',
  },
  {
    name: 'max-age-serves-stale',
    rule: 'max-age alone accepts nothing older',
    from: '(maxAgeMs ?? defaults.maxStaleMs)',
    to: 'defaults.maxStaleMs',
  },
];

const writes: readonly Mutant[] = [
  {
    name: 'write-replayed',
    rule: 'a create that was sent is never sent again',
    from: '      if (mayHaveHappened(outcome, sent)) {',
    to: '      if (false) {',
  },
  {
    name: 'unknown-outcome-unseen',
    rule: 'after an unknown outcome nothing from before it is served',
    from: "if (outcome.kind !== 'ok' && !mayHaveHappened(outcome, sent)) return answer;",
    to: "if (outcome.kind !== 'ok') return answer;",
  },
  {
    name: 'any-input',
    rule: 'an idempotency key with another input is rejected',
    from: 'if (!found.hasSameInput) throw',
    to: 'if (false) throw',
  },
  {
    name: 'lease-sent-again',
    rule: 'a create whose process was killed is unknown, and not sent again',
    from: 'return this.#replay(key, UNKNOWN_OUTCOME);',
    to: 'return this.#sendOnce(send, { key, name, lease });',
    alsoRun: 'writes/replicas',
  },
  {
    name: 'no-release',
    rule: 'a create that surely did not happen may be submitted again',
    from: 'if (error instanceof PetqlError) await',
    to: 'if (false) await',
  },
  {
    name: 'records-of-any-key',
    rule: 'idempotency keys of two API keys are two',
    from: '`${this.#parts.quota.apiKey} ${key}`',
    to: '`anybody ${key}`',
  },
  {
    name: 'outcome-not-stored',
    rule: 'a second submit gets the outcome of the first',
    from: 'if (found.outcome !== undefined) return',
    to: 'if (false) return',
  },
  {
    name: 'foreign-attempt-ended',
    rule: 'an outcome is never written over another attempt',
    from: 'if (isOther) return unchanged(found, undefined);',
    to: '',
  },
  {
    name: 'each-replay-is-news',
    rule: 'an outcome is news to a process once',
    from: 'if (this.#seen.get(key) === kind) return outcome;',
    to: '',
  },
  {
    name: 'unguarded-create',
    rule: 'a create whose record has no room is not sent',
    from: "if (!hasRoom) return unchanged(found, 'full');",
    to: '',
    alsoRun: 'security/small-redis',
  },
  {
    name: 'records-for-an-hour',
    rule: 'idempotency records live for a day',
    from: 'const RECORDS_LIVE_MS = DAY_MS;',
    to: 'const RECORDS_LIVE_MS = 3_600_000;',
  },
];

const server: readonly Mutant[] = [
  {
    name: 'made-up-keys-evict',
    rule: 'accounts of made-up keys evict no proven one',
    from: '(isProven ? this.#proven : this.#unproven).set(apiKey, value,',
    to: 'this.#proven.set(apiKey, value,',
  },
  {
    name: 'rejected-keys-call',
    rule: 'a rejected key makes no call',
    from: 'if (remainingMs <= 0) return undefined;',
    to: 'return undefined;',
  },
  {
    name: 'rejections-do-not-grow',
    rule: 'a key that is rejected again is rejected for longer',
    from: 'nextMs: Math.min(nextMs * 2, MAX_MS)',
    to: 'nextMs',
  },
  {
    name: 'callers-evicted-in-use',
    rule: 'a key has one caller while it is in use',
    from: 'this.#evicted.set(apiKey, caller);',
    to: '',
    alsoRun: 'security/made-up-keys',
  },
  {
    name: 'any-host',
    rule: 'with a server-side key only local and allowed hosts are answered',
    from: 'if (isLocalName(name) || allowed.has(name) || HEALTH.test(url))',
    to: 'if (true)',
    alsoRun: 'cli/cli',
  },
  {
    name: 'any-content-type',
    rule: 'no page of another origin can send an operation unasked',
    from: 'return JSON_TYPE.test(contentType) && ',
    to: 'return ',
  },
  {
    name: 'get-with-server-key',
    rule: 'with a server-side key only POST is answered',
    from: "if (method === 'GET' && petApiKey !== undefined)",
    to: 'if (false)',
  },
  {
    name: 'rounded-ids',
    rule: 'an id that a client has rounded is rejected',
    from: 'Number.isInteger(value) && !Number.isSafeInteger(value) ? path : undefined',
    to: 'undefined',
  },
  {
    name: 'any-depth',
    rule: 'maxDepth holds',
    from: 'if (depth > maxDepth)',
    to: 'if (false)',
  },
  {
    name: 'any-cost',
    rule: 'maxCost holds',
    from: 'return cost > maxCost ?',
    to: 'return false ?',
  },
  {
    name: 'any-name',
    rule: 'names have at most 255 characters',
    from: 'if (nameLength > MAX_NAME_LENGTH)',
    to: 'if (false)',
  },
  {
    name: 'any-repeats',
    rule: 'fields of one name are at most 100',
    from: 'if (repeats > MAX_REPEATS)',
    to: 'if (false)',
  },
  {
    name: 'any-repeated-leaves',
    rule: 'fields of one name in one selection are at most 100',
    from: 'if (leaves.length > MAX_REPEATS)',
    to: 'if (false)',
  },
  {
    name: 'an-error-for-each-place',
    rule: 'what is wrong in many places is one error',
    from: 'messages.indexOf(message) === index',
    to: 'true',
  },
  {
    name: 'any-result',
    rule: 'a result has at most 4 MiB',
    from: 'OperationTypeNode.MUTATION ? Infinity : MAX_RESULT_BYTES',
    to: 'OperationTypeNode.MUTATION ? Infinity : Infinity',
  },
  {
    name: 'any-calls',
    rule: 'maxUpstreamCalls holds',
    from: 'if (upstreamCalls > maxUpstreamCalls)',
    to: 'if (false)',
  },
  {
    name: 'any-utf-8',
    rule: 'bytes that are no UTF-8 are rejected',
    from: 'return isUtf8(whole) ?',
    to: 'return true ?',
  },
  {
    name: 'any-large-bodies',
    rule: 'bodies that are being read have a bound of memory together',
    from: 'const isHeld = this.#largeBytes + bytes <= this.#maxLargeBytes;',
    to: 'const isHeld = true;',
    alsoRun: 'security/slow-bodies',
  },
  {
    name: 'bodies-keep-their-memory',
    rule: 'a body gives its memory back when its request is over',
    from: "outgoing.once('close', () => reader.release());",
    to: '',
    alsoRun: 'security/slow-bodies',
  },
  {
    name: 'response-cache-of-any-key',
    rule: 'a cached response is for one API key',
    from: "const KEY_HEADERS = ['authorization', ",
    to: 'const KEY_HEADERS = [',
  },
  {
    name: 'execute-cache-of-any-key',
    rule: 'a cached result of execute is for one API key',
    from: '`execute\\n${apiKey}\\n${cacheControl}',
    to: '`execute\\n${cacheControl}',
  },
  {
    name: 'rounded-int64',
    rule: 'every digit of an int64 is kept',
    from: 'return /\\d[\\d.]{15}/.test(text) ?',
    to: 'return false ?',
  },
  {
    name: 'int64-overflow',
    rule: 'an int64 out of range is rejected',
    from: 'return BigInt.asIntN(64, value) === value ?',
    to: 'return true ?',
  },
];

const start: readonly Mutant[] = [
  {
    name: 'any-key-secret',
    rule: 'a process with another key secret does not start',
    from: 'isRight = found === fingerprint;',
    to: 'isRight = true;',
  },
  {
    name: 'unreadable-record-absent',
    rule: 'a record that cannot be read may guard a create',
    from: 'if (found !== undefined) return unchanged(found, UNREADABLE);',
    to: '',
  },
  {
    name: 'any-unknown-outcome-warned',
    rule: 'made-up keys cannot fill the log with warnings',
    from: 'if (quota.isProven) log.warn(details, message);',
    to: 'if (true) log.warn(details, message);',
  },
  {
    name: 'each-failure-logged',
    rule: 'an upstream that fails is one warning',
    from: 'if (this.#isFailing || nowMs - this.#warnedAtMs < WARN_EVERY_MS) return;',
    to: '',
  },
  {
    name: 'each-refusal-logged',
    rule: 'operations that are refused again and again are one warning',
    from: 'if (sinceMs < SAME_MS || !this.#hasRoom(nowMs)) return;',
    to: 'if (!this.#hasRoom(nowMs)) return;',
  },
  {
    name: 'strangers-fill-log',
    rule: 'made-up keys write ten warnings a minute at most',
    from: 'if (this.#writtenAtMs.length >= MAX_LINES) return false;',
    to: '',
  },
  {
    name: 'rejected-by-proxy-sent',
    rule: 'a call that a proxy rejects was not sent',
    from: 'if (proxyStatusOf(error)) controller = undefined;',
    to: '',
    alsoRun: 'operate/proxy',
  },
  {
    name: 'old-master',
    rule: 'a master that Sentinels have replaced gets no more writes',
    from: 'isReplaced ||= text.startsWith(`${name} `);',
    to: '',
    alsoRun: 'operate/redis-sentinel',
  },
  {
    name: 'late-response-logged',
    rule: 'calls from before a change of the upstream change nothing',
    from: 'if (sentAtMs < this.#changedAtMs) return;',
    to: '',
  },
];

/** The rules of petql, one defect each, and the folders of tests that are to find it. */
export const AREAS = [
  { mutants: throttle, folders: ['plan', 'unit'] },
  { mutants: redis, folders: ['plan', 'reads', 'writes', 'security'] },
  { mutants: reads, folders: ['reads', 'unit', 'api', 'embed'] },
  { mutants: writes, folders: ['writes', 'reads', 'api', 'security'] },
  { mutants: server, folders: ['api', 'security', 'embed', 'unit', 'reads'] },
  { mutants: start, folders: ['embed', 'operate'] },
] as const;
