import type { Socket } from 'node:net';

/**
 * Spreads over several turns of the event loop what many connections send in tiny pieces at once: each of them can bring ten
 * thousand with one read, and whatever else is due, timers and answers of the service, would wait for all of them.
 */
export interface ReadTurns {
  /** So much was read of it that costs more than its bytes do: in pieces of a body, which take a microsecond or two. */
  read(socket: Socket, pieces: number): void;
}

/**
 * Some ten milliseconds; and what the last connection sent is read to its end. Only ever reached by attacks. To pause a socket and
 * go on with it costs as much as a few pieces, and all are paused: with many open, more has to be read before.
 */
const MOST_PIECES = 4_096;

export interface ReadTurnsOptions<T> {
  /** All that are open, by their sockets, in the order in which they have their turns: whoever had one goes to its end. */
  readonly connections: Map<Socket, T>;
  /** Whether one that was paused here is not to stay so for other reasons. */
  mayGoOn(socket: Socket): boolean;
}

export function createReadTurns<T>({ connections, mayGoOn }: ReadTurnsOptions<T>): ReadTurns {
  const readNow = new Set<Socket>();
  /** Those that were read before. */
  const readOnce = new WeakSet<Socket>();
  let newestFirst = false;
  let pieces = 0;
  let paused: Socket[] = [];

  return {
    read(socket, more) {
      if (pieces === 0) setImmediate(nextTurn);
      pieces += more;
      readNow.add(socket);
      if (pieces >= Math.max(MOST_PIECES, connections.size) && paused.length === 0) pauseAll();
    },
  };

  function pauseAll(): void {
    // Node pauses some itself, whose clients do not take their answers, and goes on with them when they do.
    paused = [...connections.keys()].filter((socket) => !socket.isPaused());
    for (const socket of paused) socket.pause();
  }

  /**
   * They are read in the order in which they go on: those last that had their turn. A crowd that has sent much already would
   * have whoever comes behind it wait for all of it, so that every other time those that have not been read here go before
   * it, and the newest of them first; the other times nobody comes before those that wait for longer.
   */
  function nextTurn(): void {
    pieces = 0;
    const others = paused.filter((socket) => !readNow.has(socket));
    const last = paused.filter((socket) => readNow.has(socket));
    const first = newestFirst ? others.filter((socket) => !readOnce.has(socket)).toReversed() : [];
    if (paused.length > 0) newestFirst = !newestFirst;
    // Those that go on already do so only once.
    for (const socket of new Set([...first, ...others, ...last])) if (mayGoOn(socket)) socket.resume();
    paused = [];
    for (const socket of readNow) toTheEnd(socket);
    readNow.clear();
  }

  function toTheEnd(socket: Socket): void {
    readOnce.add(socket);
    const connection = connections.get(socket) as T;
    // What is closed by now has no more turns.
    if (connections.delete(socket)) connections.set(socket, connection);
  }
}
