/** What happened in one run, as those saw it who are not petql. */
export interface History {
  readonly arrivals: readonly Arrival[];
  readonly requests: readonly ClientRequest[];
  /** The throttle's tokens, where the throttle ran in the proof's own process. */
  readonly tokens?: Tokens;
}

/** One request as the upstream saw it, by the upstream's own clock. */
export interface Arrival {
  readonly key: string;
  readonly atMs: number;
  /** When the answer was written; Infinity while it was not. */
  answeredAtMs: number;
  readonly method: string;
  /** The name of the animal that was to be added; undefined for a read. */
  name: string | undefined;
  status: number;
  /** What a 429 said. */
  retryAfterMs: number | undefined;
}

/** One request as the client saw it, by the client's clock. */
export interface ClientRequest {
  readonly key: string;
  /** The name of the animal: one of its own for each request. */
  readonly name: string;
  readonly startedMs: number;
  readonly settlements: Settlement[];
}

export interface Settlement {
  /**
   * `created`: the animal came back. `refused`: RATE_LIMITED. `unknown`: OUTCOME_UNKNOWN, or the connection broke.
   * `aborted`: the client gave up. `failed`: any other error.
   */
  readonly outcome: 'aborted' | 'created' | 'failed' | 'refused' | 'unknown';
  readonly atMs: number;
  /** The error's code. */
  readonly code?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

export interface Tokens {
  readonly granted: number;
  readonly sent: number;
  readonly returned: number;
  /** Granted, and thrown away unused. */
  readonly expired: number;
}
