import { OnceLog } from '../common/log.ts';
import type { Log } from '../common/log.ts';

/** A Host is as long as its client likes. */
const MAX_HOST_LENGTH = 255;

/** What a listener answers, which no operation shows: the responses by their status, and the connections that it drops. */
export class HttpCounts {
  readonly #log: OnceLog;
  readonly #responses = new Map<number, number>();
  #droppedConnections = 0;

  /** @param log gets one line for names that are no names of petql, and one for dropped connections. */
  constructor(log: Log) {
    this.#log = new OnceLog(log);
  }

  get responses(): ReadonlyMap<number, number> {
    return this.#responses;
  }

  get droppedConnections(): number {
    return this.#droppedConnections;
  }

  recordResponse(status: number): void {
    this.#responses.set(status, (this.#responses.get(status) ?? 0) + 1);
  }

  /** Records a connection beyond the maximum. */
  recordDrop(maxConnections: number): void {
    this.#droppedConnections += 1;
    this.#log.warn({ maxConnections }, 'too many connections: petql drops new ones, and a proxy should bound them');
  }

  /** Records a request under a name that `--allowed-hosts` does not have. */
  recordMisdirected(host: string): void {
    const message = 'request under an unknown Host refused: allow the name with --allowed-hosts (ALLOWED_HOSTS)';
    this.#log.warn({ host: host.slice(0, MAX_HOST_LENGTH), status: 421 }, message);
  }
}
