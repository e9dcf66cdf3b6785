/** What many hold of memory together, up to a limit. */
export interface HeldTogether<Holder> {
  /** It holds so many bytes now. While all of them hold too much, the one that has held something for the longest is given up. */
  hold(holder: Holder, bytes: number): void;
  /** It holds nothing any more; nor need it have held anything. */
  release(holder: Holder): void;
}

/** @param giveUp is called with one that was released because all held more than this. */
export function createHeldTogether<Holder>(mostBytes: number, giveUp: (holder: Holder) => void): HeldTogether<Holder> {
  /** The oldest first. */
  const held = new Map<Holder, number>();
  let bytesInAll = 0;
  return {
    hold(holder, bytes) {
      bytesInAll += bytes - (held.get(holder) ?? 0);
      held.set(holder, bytes);
      for (const oldest of held.keys()) {
        if (bytesInAll <= mostBytes) return;
        release(oldest);
        giveUp(oldest);
      }
    },
    release,
  };

  function release(holder: Holder): void {
    bytesInAll -= held.get(holder) ?? 0;
    held.delete(holder);
  }
}
