import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Pet } from '../pet.ts';
import type { NameOf } from '../store/names.ts';
import type { Store } from '../store/store.ts';
import type { PetCache } from './pet-cache.ts';
import { isList } from './read-key.ts';
import type { ListName } from './read-key.ts';
import { listSnapshot } from './snapshot.ts';
import type { Snapshot } from './snapshot.ts';

interface SharedListsOptions {
  readonly store: Store;
  readonly nameOf: NameOf;
  /** How long a list is of use, in milliseconds. */
  readonly keptMs: number;
  readonly clock: Pick<Clock, 'elapsed'>;
  /** Whether the store works, so that no read waits for one that does not. */
  works(): boolean;
}

/** The document of one caller. */
interface SharedDocument {
  /** Of the last write, a UUID; '' before the first. */
  readonly version: string;
  /** The last list of each name since that write. */
  readonly lists: { readonly [Name in ListName]?: SharedList };
}

interface SharedList {
  /** By the store's clock. */
  readonly asOfMs: number;
  readonly complete: boolean;
  readonly pets: readonly Pet[];
}

/** The version in a document's name is raised with its format. */
const NAME = 'lists:2';
/** Another replica's write is seen after this at the latest. */
const LOOK_EVERY_MS = 250;
/** A list is worth learning where it is newer by this: the clock of the store is an estimate. */
const WORTH_MS = 250;
/** Longer than any call can take. */
const MAX_CALL_MS = 660_000;
const EMPTY: SharedDocument = { version: '', lists: {} };

export type SharedLists = ReturnType<typeof createSharedLists>;
/** What one caller of this process shares. */
export type CallerLists = ReturnType<SharedLists['join']>;

/** Shares lists, and the invalidation by writes, between replicas. Nothing here rejects: each replica can do without. */
export function createSharedLists({ store, nameOf, clock, works, ...options }: SharedListsOptions) {
  const ttlMs = options.keptMs + MAX_CALL_MS;
  /** Callers with a write that the store has not taken. */
  const unwritten = new Map<object, () => Promise<void>>();
  return {
    join,
    /** Announces the writes that the store has not taken. */
    flush: () => void [...unwritten.values()].map((sync) => sync()),
  };

  /** @param learn takes a list that another replica has called for. */
  function join(apiKey: string, cache: PetCache, learn: (snapshot: Snapshot) => void) {
    /** Of the last write that this caller knows of. */
    let version = '';
    let lookedAtMs = -Infinity;
    let seen: { readonly text: string | undefined; readonly document: SharedDocument } = {
      text: undefined,
      document: EMPTY,
    };

    return {
      /** Whether the last look was long enough ago. */
      isLookDue: () => works() && clock.elapsed() - lookedAtMs >= LOOK_EVERY_MS,
      /** Learns what other replicas wrote and called for. */
      look(): Promise<void> {
        lookedAtMs = clock.elapsed();
        return sync();
      },
      /** @param snapshot of the current generation, and so of the current version. */
      share(snapshot: Snapshot) {
        if (isList(snapshot.key)) void sync(snapshot);
      },
      /** Announces a write, or that the upstream rejected the key: nobody serves earlier data. Settles once the store has it, or cannot take it now. */
      wrote(): Promise<void> {
        version = randomUUID();
        unwritten.set(cache, sync);
        return sync();
      },
      leave: () => void unwritten.delete(cache),
    };

    /** Announces an own write, or else adds an own list where no other write came; and learns what the others did. */
    async function sync(own?: Snapshot): Promise<void> {
      if (!works()) return;
      const known = version;
      const wrote = unwritten.has(cache);
      try {
        const document = await store.update(`${NAME}:${nameOf(apiKey)}`, (found, nowMs) => {
          const before = wrote ? { version: known, lists: {} } : read(found);
          const asOfMs = nowMs - Math.ceil(clock.elapsed() - (own?.asOfMs ?? 0));
          const after = own && before.version === known ? withList(before, own, asOfMs) : before;
          return { text: after === read(found) ? found : JSON.stringify(after), ttlMs, result: after };
        });
        // Another write of this process came meanwhile.
        if (version !== known) return;
        unwritten.delete(cache);
        if (document.version !== version) {
          version = document.version;
          cache.invalidate();
        }
        learnFrom(document);
      } catch {
        // The store is unavailable, or has another key secret.
      }
    }

    /** Returns the same object for the same text. */
    function read(text: string | undefined): SharedDocument {
      if (seen.text !== text) {
        seen = { text, document: text === undefined ? EMPTY : (JSON.parse(text) as SharedDocument) };
      }
      return seen.document;
    }

    function learnFrom({ lists }: SharedDocument): void {
      for (const [name, { asOfMs, ...list }] of Object.entries(lists) as [ListName, SharedList][]) {
        const sentAtMs = clock.elapsed() - Math.max(0, store.nowMs() - asOfMs);
        if (sentAtMs > (cache.find(name)?.asOfMs ?? -Infinity) + WORTH_MS) {
          learn(listSnapshot(name, list, sentAtMs, cache.known));
        }
      }
    }
  }
}

function withList(document: SharedDocument, { key, pets, isComplete }: Snapshot, asOfMs: number): SharedDocument {
  const name = key as ListName;
  if ((document.lists[name]?.asOfMs ?? -Infinity) >= asOfMs) return document;
  return { ...document, lists: { ...document.lists, [name]: { asOfMs, complete: isComplete, pets } } };
}
