/** One operation as its client saw it. All times are the soak's own `performance.now()`. */
export interface Operation {
  readonly key: string;
  readonly replica: number;
  /** Which process of this replica's, since they are restarted: 0 for the first. */
  readonly life: number;
  readonly startedMs: number;
  readonly endedMs: number;
  /** How long it may wait for the plan. */
  readonly waitMs: number;
  readonly cacheControl: CacheControl;
  /** When the last creation was carried out that this process had told the same key's clients of before; -Infinity for none. */
  readonly afterWriteMs: number;
  /** The last creation with this key that any process had told of long enough before for all to have heard of it. */
  readonly heardWrite: HeardWrite | undefined;
  readonly asked: readonly Asked[];
  /** Codes that this operation is made to get; empty for a sound one. */
  readonly meant: readonly string[];
  readonly outcome: Outcome;
}

export interface HeardWrite {
  /** When it was carried out. */
  readonly atMs: number;
  /** When its answer came. */
  readonly toldMs: number;
}

/** Seconds, as the header has them. */
export interface CacheControl {
  readonly maxAge?: number;
  readonly maxStale?: number;
  readonly noCache?: boolean;
  readonly onlyIfCached?: boolean;
}

export type Status = 'available' | 'pending' | 'sold';

/** One field at the operation's top. */
export type Asked =
  | { readonly kind: 'create'; readonly pet: WantedPet }
  | { readonly kind: 'free' }
  | { readonly kind: 'pet'; readonly id: string }
  | { readonly kind: 'pets'; readonly status: Status | undefined; readonly limit: number }
  | { readonly kind: 'petsById'; readonly ids: readonly string[] };

/** An animal that somebody wants to add: its name is its own, so that it is known again wherever it comes up. */
export interface WantedPet {
  readonly name: string;
  readonly categoryId: string;
  readonly status: Status | undefined;
  readonly idempotencyKey: string | undefined;
}

export type Outcome =
  | { readonly kind: 'answered'; readonly httpStatus: number; readonly answer: Answer }
  /** The connection broke, or what came was no answer. */
  | { readonly kind: 'lost'; readonly reason: string }
  /** The client went away, as it meant to. */
  | { readonly kind: 'left' }
  /** Nothing came for so long that the client gave up. */
  | { readonly kind: 'hung' };

export interface Answer {
  /** Fields by their aliases: `f0` is the first that was asked for. */
  readonly data?: Readonly<Record<string, any>> | null;
  readonly errors?: readonly AnswerError[];
  readonly extensions?: { readonly petql?: { readonly oldestAgeMs?: number; readonly staleReason?: string } };
}

export interface AnswerError {
  readonly message: string;
  readonly path?: readonly (number | string)[];
  readonly extensions?: { readonly code?: string; readonly upstream?: { readonly status?: number } };
}

/** What became of the field at this position. */
export function fieldOf({ data, errors = [] }: Answer, position: number): { value: any; error?: AnswerError } {
  const alias = `f${position}`;
  const error = errors.find(({ path }) => !path || path[0] === alias);
  return { value: data?.[alias], ...(error ? { error } : {}) };
}
