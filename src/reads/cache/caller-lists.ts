import { randomUUID } from 'node:crypto';
import { StoreUnavailableError } from '../../store/store.ts';
import { MOMENT_MS, waitAtMost } from '../../common/time-limit.ts';
import type { PetCache } from './pet-cache.ts';
import { isList } from '../../pets/read-key.ts';
import type { ListName } from '../../pets/read-key.ts';
import { INDEX_NAME, LIST_NAME } from './shared-documents.ts';
import type { Index } from './shared-documents.ts';
import type { SharedLists } from './shared-lists.ts';
import { listSnapshot } from '../../pets/snapshot.ts';
import type { Snapshot } from '../../pets/snapshot.ts';
import { LONGEST_CALL_MS, LOOK_EVERY_MS, MAX_BLIND_MS, NEWER_MS, REFRESH_LEASE_MS } from '../../common/call-times.ts';

const EMPTY: Index = { version: '', lists: {}, refreshes: {} };

/** Gets the lists that other replicas have called for. */
interface Receiver {
  receiveShared(snapshot: Snapshot): void;
}

/**
 * What one caller of this process shares: an index, which is small, and beside it each list. Lists stay in the cache alone.
 * Nothing here rejects: each replica can do without.
 */
export class CallerLists {
  readonly #shared: SharedLists;
  /** The hash of the API key. */
  readonly #name: string;
  readonly #cache: PetCache;
  readonly #receiver: Receiver;
  /** The version of the last write that this process has made or read. */
  #version = '';
  /** The index as the store had it last. */
  #index = EMPTY;
  /** The index that was read last, with its text. */
  #parsed: { readonly text: string | undefined; readonly index: Index } = { text: undefined, index: EMPTY };
  /** By `clock.elapsed()`: when the last look began, and when the last exchange with the store began that succeeded. */
  #lookedAtMs = -Infinity;
  #seenAtMs = -Infinity;
  /** The look under way. */
  #looking: Promise<void> | undefined;
  /** The lists that are being read. */
  readonly #fetches = new Map<ListName, Promise<void>>();

  constructor(shared: SharedLists, apiKey: string, cache: PetCache, receiver: Receiver) {
    this.#shared = shared;
    this.#name = shared.options.nameOf(apiKey);
    this.#cache = cache;
    this.#receiver = receiver;
  }

  /** Looks in the background at what other replicas wrote and called for, where the last look was long enough ago. */
  keepUp(): void {
    if (this.#isLookDue) this.#shared.lookSoon(this);
  }

  /** Looks now, where the last look was long enough ago. */
  look(): void {
    if (!this.#isLookDue) return;
    this.#lookedAtMs = this.#shared.options.clock.elapsed();
    this.#looking = this.sync().finally(() => (this.#looking = undefined));
  }

  /** Whether the last look is too old to show the writes of other replicas. */
  get isBlind(): boolean {
    const { clock, replicas } = this.#shared.options;
    return clock.elapsed() - this.#seenAtMs > MAX_BLIND_MS && replicas.isRedisWorking;
  }

  /** Keeps up. Returns what to wait for where the last look is too old: it settles within a moment. */
  catchUp(): Promise<void> | undefined {
    if (!this.isBlind) {
      this.keepUp();
      return undefined;
    }
    this.look();
    return (
      this.#looking && waitAtMost(this.#looking, this.#lookedAtMs + MOMENT_MS - this.#shared.options.clock.elapsed())
    );
  }

  /** Announces that this replica refreshes those of the lists that no other one does. Resolves within a moment. */
  async claimRefresh(lists: readonly ListName[]): Promise<void> {
    const { store, replica, replicas } = this.#shared.options;
    const open = lists.filter((list) => !isLeased(this.#index, list, store.nowMs()));
    if (open.length === 0 || replicas.count === 1) return;
    const refreshing = this.sync((index, nowMs) => {
      const isFree = (list: ListName) => !isLeased(index, list, nowMs) && !this.#isNews(list, index.lists[list]);
      const leases = open.filter(isFree).map((list) => [list, { by: replica, untilMs: nowMs + REFRESH_LEASE_MS }]);
      if (leases.length === 0) return index;
      return { ...index, refreshes: { ...index.refreshes, ...Object.fromEntries(leases) } };
    });
    await waitAtMost(refreshing, MOMENT_MS);
  }

  /** Whether another replica refreshes this list now. */
  isRefreshedElsewhere(list: ListName): boolean {
    const { store, replica } = this.#shared.options;
    return isLeased(this.#index, list, store.nowMs()) && this.#index.refreshes[list]?.by !== replica;
  }

  /**
   * Adds a list that this replica has called for.
   *
   * @param snapshot of the current generation, and so of the current version.
   */
  async share({ key, pets, isComplete, asOfMs: sentAtMs }: Snapshot): Promise<void> {
    const { store, redis, clock, replicas } = this.#shared.options;
    if (!isList(key) || !replicas.isRedisWorking) return;
    const asOfMs = store.nowMs() - Math.ceil(clock.elapsed() - sentAtMs);
    const text = JSON.stringify({ version: this.#version, asOfMs, complete: isComplete, pets });
    const writing = this.#attempt(() => redis.write(this.#listName(key), text, this.#ttlMs));
    // The index is sent after the list, on the same connection.
    await this.sync((index) => withList(index, key, asOfMs));
    await writing;
  }

  /**
   * Announces a write, or that the upstream rejected the key: other replicas serve nothing that they cached before. Settles once
   * the store has it, or cannot take it now.
   *
   * @param isCertain whether the write surely happened.
   */
  announce(isCertain = true): Promise<void> {
    const id = randomUUID();
    this.#version = isCertain ? id : `${certainPart(this.#version)}${UNKNOWN_WRITE}${id}`;
    this.#shared.unwritten.add(this);
    return this.sync();
  }

  /** Frees what the caller holds, after its eviction. */
  free(): void {
    this.#shared.unwritten.delete(this);
  }

  /** Stores this caller's write, or else the change where no other write came. Loads what other replicas stored. */
  async sync(change: IndexChange = (index) => index): Promise<void> {
    const { unwritten } = this.#shared;
    const { store, clock, replicas } = this.#shared.options;
    if (!replicas.isRedisWorking) return;
    const version = this.#version;
    const isAnnounced = !unwritten.has(this);
    const startedAtMs = clock.elapsed();

    await this.#attempt(async () => {
      const index = await store.update(`${INDEX_NAME}:${this.#name}`, (text, nowMs) => {
        const found = this.#parse(text);
        const before = isAnnounced ? found : { ...EMPTY, version };
        const after = before.version === version ? change(before, nowMs) : before;
        return { text: after === found ? text : JSON.stringify(after), ttlMs: this.#ttlMs, result: after };
      });

      // Another write of this process came meanwhile.
      if (this.#version !== version) return;
      unwritten.delete(this);
      this.#seenAtMs = startedAtMs;
      this.#follow(index);
      const lists = Object.keys(index.lists).filter(isList);
      const news = lists.filter((list) => this.#isNews(list, index.lists[list]));
      await Promise.all(news.map((list) => this.#fetch(list)));
    });
  }

  /** Returns the same object for the same text. */
  #parse(text: string | undefined): Index {
    if (this.#parsed.text !== text) this.#parsed = { text, index: this.#shared.readIndex(text) ?? { ...EMPTY } };
    return this.#parsed.index;
  }

  #follow(index: Index): void {
    this.#index = index;
    if (index.version === this.#version) return;
    this.#cache.invalidate(certainPart(index.version) !== certainPart(this.#version));
    this.#version = index.version;
  }

  /** Whether a list of this moment, by the clock of the store, is newer than the cached one, and not too old. */
  #isNews(list: ListName, asOfMs: number | undefined): boolean {
    const { clock, keptMs } = this.#shared.options;
    if (asOfMs === undefined) return false;
    const sentAtMs = this.#sentAtMs(asOfMs);
    return sentAtMs > clock.elapsed() - keptMs && sentAtMs > (this.#cache.find(list)?.asOfMs ?? -Infinity) + NEWER_MS;
  }

  /** The same moment by `clock.elapsed()`. */
  #sentAtMs(asOfMs: number): number {
    const { clock, store } = this.#shared.options;
    return clock.elapsed() - Math.max(0, store.nowMs() - asOfMs);
  }

  /** Reads a list once for all syncs that find it at the same time. */
  #fetch(list: ListName): Promise<void> {
    const fetching = this.#fetches.get(list) ?? this.#fetchList(list).finally(() => this.#fetches.delete(list));
    this.#fetches.set(list, fetching);
    return fetching;
  }

  async #fetchList(list: ListName): Promise<void> {
    const { readList, options } = this.#shared;
    const shared = readList(await options.redis.read(this.#listName(list)));
    // It may be from before a write.
    if (shared?.version !== this.#version || !this.#isNews(list, shared.asOfMs)) return;
    const sentAtMs = this.#sentAtMs(shared.asOfMs);
    this.#receiver.receiveShared(listSnapshot(list, shared, sentAtMs, this.#cache));
  }

  /** Resolves also where the store is unavailable. */
  async #attempt(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      if (error instanceof StoreUnavailableError) return;
      this.#shared.options.log.error({ err: error }, 'unhandled error while sharing lists');
    }
  }

  get #isLookDue(): boolean {
    const { clock, replicas } = this.#shared.options;
    const lastMs = Math.max(this.#lookedAtMs, this.#seenAtMs);
    return !this.#looking && clock.elapsed() - lastMs >= LOOK_EVERY_MS && replicas.isRedisWorking;
  }

  get #ttlMs(): number {
    return this.#shared.options.keptMs + LONGEST_CALL_MS;
  }

  #listName(list: ListName): string {
    return `${LIST_NAME}:${this.#name}:${list}`;
  }
}

/** Stands before the part of a version that counts writes of unknown outcome. */
const UNKNOWN_WRITE = '?';

function certainPart(version: string): string {
  return version.split(UNKNOWN_WRITE, 1)[0] ?? '';
}

type IndexChange = (index: Index, nowMs: number) => Index;

function isLeased({ refreshes }: Index, list: ListName, nowMs: number): boolean {
  return (refreshes[list]?.untilMs ?? -Infinity) > nowMs;
}

/** Adds a list where it is the newest, and ends the lease of its refresh. */
function withList(index: Index, list: ListName, asOfMs: number): Index {
  if ((index.lists[list] ?? -Infinity) >= asOfMs) return index;
  const { [list]: _ended, ...refreshes } = index.refreshes;
  return { ...index, lists: { ...index.lists, [list]: asOfMs }, refreshes };
}
