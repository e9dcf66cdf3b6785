import type { Clock } from '../../common/clock.ts';
import { setNewest } from '../../common/memory.ts';
import type { Int64 } from '../../pets/int64.ts';
import type { Pet } from '../../pets/pet.ts';
import { ALL_PETS, LISTS, callsFor } from '../../pets/read-key.ts';
import type { Freshness } from '../../common/caller-request.ts';
import type { ListName, ReadKey } from '../../pets/read-key.ts';
import type { ListSize } from '../../pets/call-planner.ts';
import { answerFrom, listsWithout } from '../../pets/snapshot.ts';
import type { EarlierData, Found, ListDoubt, Snapshot } from '../../pets/snapshot.ts';
import { ListDoubts } from './list-doubts.ts';
import type { NewDoubt } from './list-doubts.ts';
import type { SnapshotMemory } from './snapshot-memory.ts';
import { EVIDENCE_MS, LAG_MS } from '../../common/call-times.ts';

export interface CachedEntry {
  readonly found: Found;
  /** By `clock.elapsed()`: what was found was true then or later. */
  readonly asOfMs: number;
}

/** An entry that a request accepts. */
interface AcceptedEntry {
  readonly entry: CachedEntry;
  /** Whether it is older than the `maxAgeMs` of the request. */
  readonly isStale: boolean;
}

/** Whether the data of the key is withheld after a 401. */
interface Withholding {
  readonly isWithheld: boolean;
}

interface StoredSnapshot {
  readonly snapshot: Snapshot;
  /** That of the cache when it was stored. */
  readonly generation: number;
  /** When a read showed it; undefined for a create, and for some seconds after it: lists may lag behind. */
  readonly shownAtMs: number | undefined;
}

const MAX_CREATED = 1_000;

/** The snapshots of one caller: the latest of each list and of each pet, while the memory of all callers allows them. */
export class PetCache implements EarlierData {
  readonly #memory: SnapshotMemory;
  readonly #elapsed: Clock['elapsed'];
  /** The latest snapshot of each call. */
  readonly #snapshots = new Map<ReadKey, StoredSnapshot>();
  /** When pets were created, by `clock.elapsed()`: those of the last few seconds. */
  #createdAtMs: Map<Int64, number> | undefined;
  readonly #withholding: Withholding;
  readonly #doubts = new ListDoubts();
  #generation = 0;
  /** That of the latest write which surely happened. */
  #certainGeneration = 0;
  /** When a write raised it last, by `clock.elapsed()`. */
  #changedAtMs = -Infinity;

  constructor(memory: SnapshotMemory, { elapsed }: Pick<Clock, 'elapsed'>, withholding: Withholding) {
    this.#memory = memory;
    this.#elapsed = elapsed;
    this.#withholding = withholding;
  }

  /** Each write raises this number (rule 1 of reads/README.md). A snapshot of an earlier generation is never served. */
  get generation(): number {
    return this.#generation;
  }

  sizeOf(list: ListName): ListSize {
    const last = this.#snapshots.get(list)?.snapshot;
    if (!last) return 'unknown';
    return last.isComplete ? 'small' : 'large';
  }

  /** Returns the latest entry of this generation, however old. */
  find(key: ReadKey): CachedEntry | undefined {
    return this.#latest(key, this.#generation);
  }

  /** Returns the latest entry if the request accepts it, fresh or stale. */
  findAccepted(key: ReadKey, freshness: Freshness): AcceptedEntry | undefined {
    return this.#findAccepted(key, freshness, this.#generation);
  }

  /** Returns the latest entry that the request accepts as stale, from before writes whose outcome is unknown too. */
  findBeforeUnknownWrite(key: ReadKey, { maxStaleMs }: Freshness): AcceptedEntry | undefined {
    return this.#findAccepted(key, { maxAgeMs: -1, maxStaleMs }, this.#certainGeneration);
  }

  /** Returns the newest data for the key, from before writes too. */
  findEarlier(list: ListName): readonly Pet[] | undefined;
  findEarlier(id: Int64): Pet | null | undefined;
  findEarlier(key: ReadKey): Found | undefined {
    return this.#latest(key, 0)?.found;
  }

  /** Whether the list showed the pet when it was last called for, writes or not; undefined where it never was. */
  hasShown(list: ListName, id: Int64): boolean | undefined {
    return this.#snapshots.get(list)?.snapshot.byId.has(id);
  }

  /** Whether a list has shown the pet since this moment. */
  isShownSince(id: Int64, sinceMs: number): boolean {
    return this.#listsSince(sinceMs).some(({ byId }) => byId.has(id));
  }

  /** Returns so many pets that lists have shown since this moment. */
  petsShownSince(sinceMs: number, count: number): readonly Int64[] {
    const ids = this.#listsSince(sinceMs).flatMap(({ pets }) => pets.slice(0, count).map(({ id }) => id));
    return [...new Set(ids)].slice(0, count);
  }

  /** Whether a write may have changed the store since this moment. */
  hasChangedSince(sinceMs: number): boolean {
    return this.#changedAtMs > sinceMs;
  }

  /** Whether anything but this was called for. */
  hasOther(key: ReadKey): boolean {
    return this.#snapshots.size > (this.#snapshots.has(key) ? 1 : 0);
  }

  /** Returns the lists that were shown at this moment or later, in this generation, without the read. */
  freshListsWithout(key: ReadKey, sinceMs: number): Set<ListName> {
    const fresh = new Set<ListName>();
    for (const called of LISTS) {
      const { snapshot, generation } = this.#snapshots.get(called) ?? {};
      if (!snapshot || generation !== this.#generation || snapshot.asOfMs < sinceMs) continue;
      for (const list of listsWithout(snapshot, key)) fresh.add(list);
    }
    return fresh;
  }

  /** Stores what a read showed in this generation, unless something newer is there. */
  store(snapshot: Snapshot): void {
    const nowMs = this.#elapsed();
    const isJustCreated = nowMs - (this.#createdAtMs?.get(snapshot.key as Int64) ?? -Infinity) <= LAG_MS;
    this.#add(snapshot, isJustCreated ? undefined : nowMs);
  }

  /** Stores pets that the upstream has created now. */
  storeCreated(snapshot: Snapshot): void {
    this.#add(snapshot, undefined);
    for (const id of snapshot.byId.keys()) this.#recordCreated(id);
  }

  /**
   * Checks a complete list of all pets against what other calls had shown before it was sent. Returns what is in
   * doubt from now on; undefined where nothing changes.
   */
  checkList(pets: readonly Pet[], sentAtMs: number): NewDoubt | undefined {
    const ids = new Set(pets.map(({ id }) => id));
    const lacking = [...this.#shownAtMs(sentAtMs)].filter(([id]) => !ids.has(id));
    return this.#doubts.record(sentAtMs, new Map(lacking));
  }

  doubtAt(sentAtMs: number): ListDoubt {
    return this.#doubts.at(sentAtMs);
  }

  *shownBefore(sentAtMs: number): Iterable<Int64> {
    for (const [id, createdAtMs] of this.#createdAtMs ?? []) if (sentAtMs - createdAtMs <= LAG_MS) yield id;
    yield* this.#shownAtMs(sentAtMs).keys();
  }

  /**
   * Raises the generation: a write may have changed the store.
   *
   * @param isCertain whether it surely has. Otherwise earlier entries are served while calls fail.
   */
  invalidate(isCertain: boolean): void {
    this.#generation += 1;
    this.#changedAtMs = this.#elapsed();
    if (isCertain) this.#certainGeneration = this.#generation;
  }

  /** Deletes what this call showed. */
  drop(key: ReadKey): void {
    const stored = this.#snapshots.get(key);
    this.#snapshots.delete(key);
    if (stored) this.#memory.delete(stored.snapshot);
  }

  /** Deletes everything. */
  clear(): void {
    this.invalidate(true);
    for (const key of this.#snapshots.keys()) this.drop(key);
    this.#createdAtMs = undefined;
  }

  /** Deletes a snapshot that the memory has evicted. */
  recordEviction(snapshot: Snapshot): void {
    const { key } = snapshot;
    if (this.#snapshots.get(key)?.snapshot === snapshot) this.#snapshots.delete(key);
  }

  /** The pets that gets and lists by a filter had shown in the minutes before this moment, and when they did so last. */
  #shownAtMs(sentAtMs: number): ReadonlyMap<Int64, number> {
    const shown = new Map<Int64, number>();
    for (const [call, { snapshot, shownAtMs = Infinity }] of this.#snapshots) {
      const isBefore = shownAtMs <= sentAtMs && sentAtMs - snapshot.asOfMs <= EVIDENCE_MS;
      if (call === ALL_PETS || !isBefore) continue;
      for (const { id } of snapshot.pets) shown.set(id, Math.max(shownAtMs, shown.get(id) ?? -Infinity));
    }
    return shown;
  }

  #listsSince(sinceMs: number): readonly Snapshot[] {
    const lists = LISTS.map((list) => this.#snapshots.get(list)?.snapshot);
    return lists.filter((snapshot) => snapshot !== undefined && snapshot.asOfMs >= sinceMs) as Snapshot[];
  }

  #add(snapshot: Snapshot, shownAtMs: number | undefined): void {
    const { key } = snapshot;
    const before = this.#snapshots.get(key);
    if (before?.generation === this.#generation && before.snapshot.asOfMs > snapshot.asOfMs) return;
    this.drop(key);
    this.#snapshots.set(key, { snapshot, generation: this.#generation, shownAtMs });
    this.#memory.add(snapshot, this);
  }

  #recordCreated(id: Int64): void {
    const nowMs = this.#elapsed();
    const all = (this.#createdAtMs ??= new Map());
    for (const [earlier, createdAtMs] of all) {
      // In the order of their times.
      if (nowMs - createdAtMs <= LAG_MS) break;
      all.delete(earlier);
    }
    setNewest(all, [id, nowMs], MAX_CREATED);
  }

  #findAccepted(
    key: ReadKey,
    { maxAgeMs, maxStaleMs }: Pick<Freshness, 'maxAgeMs' | 'maxStaleMs'>,
    fromGeneration: number,
  ): AcceptedEntry | undefined {
    const entry = this.#withholding.isWithheld ? undefined : this.#latest(key, fromGeneration);
    if (!entry) return undefined;
    const ageMs = this.#elapsed() - entry.asOfMs;
    return ageMs <= Math.max(maxAgeMs, maxStaleMs) ? { entry, isStale: ageMs > maxAgeMs } : undefined;
  }

  #latest(key: ReadKey, fromGeneration: number): CachedEntry | undefined {
    let best: Snapshot | undefined;
    let found: Found | undefined;
    for (const call of callsFor(key)) {
      const stored = this.#snapshots.get(call);
      if (!stored || stored.generation < fromGeneration) continue;
      if (best && best.asOfMs >= stored.snapshot.asOfMs) continue;

      const shown = answerFrom(stored.snapshot, key);
      if (shown === undefined) continue;
      best = stored.snapshot;
      found = shown;
    }
    if (!best || found === undefined) return undefined;

    this.#memory.recordUse(best);
    return { found, asOfMs: best.asOfMs };
  }
}
