/** Each takes less than a kilobyte of Redis. */
const MAX_DOCUMENTS = 1_000;

/**
 * Bounds the stored documents of one kind that a process writes for keys which are not proven: anybody can make up keys, and a
 * full store harms all others.
 */
export class UnprovenDocuments {
  /** When each document expires, by the store's clock. */
  readonly #endsAtMs = new Map<string, number>();

  /** Counts a document until it expires, or until `delete`. Returns false where there is no room for it. */
  add(id: string, endsAtMs: number, nowMs: number): boolean {
    if (!this.#endsAtMs.has(id) && !this.hasRoom(nowMs)) return false;
    this.#endsAtMs.set(id, endsAtMs);
    return true;
  }

  /** Stops counting a document: it is deleted, or its key is proven. */
  delete(id: string): void {
    this.#endsAtMs.delete(id);
  }

  hasRoom(nowMs: number): boolean {
    if (this.#endsAtMs.size < MAX_DOCUMENTS) return true;
    for (const [id, endsAtMs] of this.#endsAtMs) if (endsAtMs <= nowMs) this.#endsAtMs.delete(id);
    return this.#endsAtMs.size < MAX_DOCUMENTS;
  }
}
