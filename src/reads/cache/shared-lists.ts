import type { NameOf } from '../../store/names.ts';
import { createDocumentReader } from '../../store/read-document.ts';
import type { ReadDocument } from '../../store/read-document.ts';
import { CallerLists } from './caller-lists.ts';
import type { SharingOptions } from './caller-lists.ts';
import type { PetCache } from './pet-cache.ts';
import { INDEX, SHARED_LIST } from './shared-documents.ts';
import type { Index, SharedList } from './shared-documents.ts';
import type { Snapshot } from '../../pets/snapshot.ts';

interface SharedListsOptions extends SharingOptions {
  readonly nameOf: NameOf;
}

/** Looks in the background of all callers begin together: writing to a connection costs more than a look. */
const LOOK_TOGETHER_MS = 20;

/** Shares lists, and the invalidation by writes, between replicas. */
export class SharedLists {
  readonly #options: SharedListsOptions;
  readonly #readIndex: ReadDocument<Index>;
  readonly #readList: ReadDocument<SharedList>;
  /** Callers with a write that the store has not taken. */
  readonly #unwritten = new Set<CallerLists>();
  /** Callers whose next look in the background begins soon. */
  readonly #looking = new Set<CallerLists>();

  constructor(options: SharedListsOptions) {
    const { store, log } = options;
    this.#options = options;
    this.#readIndex = createDocumentReader('index of lists', INDEX, store, log);
    this.#readList = createDocumentReader('list', SHARED_LIST, store, log);
  }

  /** @param receive takes a list that another replica has called for. */
  join(apiKey: string, cache: PetCache, receive: (snapshot: Snapshot) => void): CallerLists {
    return new CallerLists({
      ...this.#options,
      name: this.#options.nameOf(apiKey),
      readIndex: this.#readIndex,
      readList: this.#readList,
      unwritten: this.#unwritten,
      lookSoon: (lists) => this.#lookSoon(lists),
      cache,
      receive,
    });
  }

  /** Announces the writes that the store has not taken. */
  flush(): void {
    for (const lists of this.#unwritten) void lists.sync();
  }

  #lookSoon(lists: CallerLists): void {
    const isFirst = this.#looking.size === 0;
    this.#looking.add(lists);
    if (!isFirst) return;
    setTimeout(() => {
      for (const each of this.#looking) each.look();
      this.#looking.clear();
    }, LOOK_TOGETHER_MS).unref();
  }
}
