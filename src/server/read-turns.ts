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

export interface ReadTurnsOptions {
  /** All that are open, by their sockets. */
  readonly connections: ReadonlyMap<Socket, unknown>;
  /** Whether one that was paused here is not to stay so for other reasons. */
  mayGoOn(socket: Socket): boolean;
}

export function createReadTurns({ connections, mayGoOn }: ReadTurnsOptions): ReadTurns {
  const readNow = new Set<Socket>();
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

  /** They are read in the order in which they go on: those last that had their turn. */
  function nextTurn(): void {
    pieces = 0;
    const others = paused.filter((socket) => !readNow.has(socket));
    const last = paused.filter((socket) => readNow.has(socket));
    for (const socket of [...others, ...last]) if (mayGoOn(socket)) socket.resume();
    paused = [];
    readNow.clear();
  }
}
