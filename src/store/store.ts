/**
 * When Redis gets a change, of which each makes the other replicas lose their compares. `now`: at once. `soon`: at once, but for a
 * moment where this replica has just written and others write too. `late`: with the next change of the document, or 25 ms later.
 */
export type Urgency = 'late' | 'now' | 'soon';

/** A key-value store of small texts that outlive a request, over memory, an SQLite file or Redis. */
export interface Store {
  /**
   * Changes one document in one atomic step, and returns what `change` returned with it. Updates of one document are
   * applied in the order in which they were called.
   *
   * @param change may run again, over Redis where another replica wrote first: what it does beside must be the same twice.
   * @param urgency default `soon`.
   * @throws StoreUnavailableError when the store could not be read or written; it says whether the change may be written.
   */
  update<Result>(name: string, change: Change<Result>, urgency?: Urgency): Promise<Result>;
  /** The store's clock, in milliseconds since the Unix epoch: Redis's own as last seen, so that replicas agree. */
  nowMs(): number;
  /** Closes file or connection. */
  close(): Promise<void>;
}

/** A store that other processes write too. */
export interface SharedStore extends Store {
  /**
   * Returns the text of a document. It keeps no copy, as `update` does, so it is for large documents.
   *
   * @throws StoreUnavailableError
   */
  read(name: string): Promise<string | undefined>;
  /**
   * Writes a document, whatever it was.
   *
   * @throws StoreUnavailableError when it may be written or not.
   */
  write(name: string, text: string, ttlMs: number): Promise<void>;
}

/** @param found the document's text; undefined where there is none, or it has expired. */
export type Change<Result> = (found: string | undefined, nowMs: number) => Changed<Result>;

export interface Changed<Result> {
  /** The new text. Undefined deletes the document; the found text leaves it and its expiry unchanged. */
  readonly text: string | undefined;
  /** Time to live from now, in milliseconds. */
  readonly ttlMs: number;
  readonly result: Result;
}

/** The store failed. The message is the reason, without secrets. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
  /** Whether it may have written nevertheless. */
  readonly mayBeWritten: boolean;

  /** Also those of another evaluation of this module, whose store this one may share. */
  static override [Symbol.hasInstance](error: unknown): boolean {
    return error instanceof Error && error.name === 'StoreUnavailableError';
  }

  constructor(message: string, { mayBeWritten = true, ...options }: ErrorOptions & { mayBeWritten?: boolean } = {}) {
    super(message, options);
    this.mayBeWritten = mayBeWritten;
  }
}
