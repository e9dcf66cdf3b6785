import type { Clock } from '../../common/clock.ts';
import type { Log } from '../../common/log.ts';
import type { NameOf } from '../../store/names.ts';
import { createDocumentReader } from '../../store/read-document.ts';
import type { ReadDocument } from '../../store/read-document.ts';
import type { Replicas } from '../../store/replicas.ts';
import type { SharedStore, Store } from '../../store/store.ts';
import { INDEX, SHARED_LIST } from './shared-documents.ts';
import type { Index, SharedList } from './shared-documents.ts';
import { LOOK_TOGETHER_MS } from '../../common/call-times.ts';

interface SharedListsOptions {
  /** Holds the index of each key. */
  readonly store: Store;
  /** Holds the lists, without a check of the key secret: only the index leads to them. */
  readonly redis: Pick<SharedStore, 'read' | 'write'>;
  /** The processes that share the store, and whether it works: no read waits for one that does not. */
  readonly replicas: Pick<Replicas, 'count' | 'isRedisWorking'>;
  /** Names this process. */
  readonly replica: string;
  readonly nameOf: NameOf;
  /** How long a list is of use, in milliseconds. */
  readonly keptMs: number;
  readonly clock: Pick<Clock, 'elapsed'>;
  readonly log: Log;
}

/** What one caller shares. */
interface Member {
  /** Looks at what other replicas stored. */
  look(): void;
  /** Stores a write. */
  sync(): Promise<void>;
}

/** By what all callers of this process share lists, and the invalidation by writes, with other replicas. */
export class SharedLists {
  readonly options: SharedListsOptions;
  readonly readIndex: ReadDocument<Index>;
  readonly readList: ReadDocument<SharedList>;
  /** Callers with a write that the store has not taken. */
  readonly unwritten = new Set<Member>();
  /** Callers whose next look in the background begins soon. */
  readonly #looking = new Set<Member>();

  constructor(options: SharedListsOptions) {
    const { store, log } = options;
    this.options = options;
    this.readIndex = createDocumentReader('index of lists', INDEX, store, log);
    this.readList = createDocumentReader('list', SHARED_LIST, store, log);
  }

  /** Announces the writes that the store has not taken. */
  flush(): void {
    for (const member of this.unwritten) void member.sync();
  }

  /** Calls `look` of the caller a moment later. */
  lookSoon(member: Member): void {
    const isFirst = this.#looking.size === 0;
    this.#looking.add(member);
    if (!isFirst) return;
    setTimeout(() => {
      for (const each of this.#looking) each.look();
      this.#looking.clear();
    }, LOOK_TOGETHER_MS).unref();
  }
}
