/** A connection was lost, and the next one led to another Redis. */
export interface Replacement {
  /** How many milliseconds ago the connection was lost. */
  agoMs(): number;
}

/** As much of a client of Redis as is needed to find out. */
interface Connection {
  readonly status: string;
  on(event: 'close' | 'ready', listener: () => void): unknown;
  info(): Promise<string>;
}

/**
 * Watches for a Redis that may hold less than the one before it: a replica that was promoted has not heard of the last writes
 * of its master, and a process that was started anew has them only as far as they were on its disk. A connection that was
 * merely dropped leads back to the same process, and nothing is lost.
 *
 * @returns the last replacement, each another object; undefined where there was none.
 */
export function watchReplaced(redis: Connection): () => Replacement | undefined {
  let replacement: Replacement | undefined;
  let life: string | undefined;
  let lostAtMs: number | undefined;
  let isFirst = true;
  redis.on('close', () => {
    if (!isFirst) lostAtMs ??= performance.now();
  });
  redis.on('ready', () => {
    // Commands that are sent from now on are answered after this one, by when it is known.
    void redis
      .info()
      .then(lifeOf, () => undefined)
      .then(noteLife);
  });
  return () => replacement;

  function noteLife(found: string | undefined): void {
    // The next connection will tell.
    if (redis.status !== 'ready') return;
    const atMs = lostAtMs;
    // One that does not say who it is may be another.
    const isSame = found !== undefined && found === life;
    if (atMs !== undefined && !isSame) replacement = { agoMs: () => performance.now() - atMs };
    [life, lostAtMs, isFirst] = [found, undefined, false];
  }
}

/** Its process, and the history of writes that it follows: a replica begins a new one when it is promoted. */
function lifeOf(info: string): string | undefined {
  const process = /^run_id:(\w+)/m.exec(info)?.[1];
  const history = /^master_replid:(\w+)/m.exec(info)?.[1];
  return process && history && `${process} ${history}`;
}
