import type { Plan } from '../../common/plan.ts';

/** What becomes of a call. The parts can be combined; without a status the call is carried out. */
export interface StoryFailure {
  /** HTTP status of the response in place of its own, 400 to 599. The call is then not carried out. */
  readonly status?: number | undefined;
  /** The `Retry-After` header, in seconds. Default: none. */
  readonly retryAfter?: number | undefined;
  /** How much later the response leaves, in milliseconds. Default 0. */
  readonly delayMs?: number | undefined;
  /** Whether the connection breaks before the response. Default false. */
  readonly isLost?: boolean | undefined;
}

/** What goes wrong with the next calls. */
export interface NextFailure extends StoryFailure {
  /** How many calls fail. Default 1; Infinity: all until `recover`. */
  readonly times?: number | undefined;
  /** The method of the calls that fail; POST is a create. Default: any. */
  readonly method?: 'GET' | 'POST' | undefined;
}

/** A call with a valid key, as a story sees it. */
export interface StoryCall {
  /** Among the calls of its key, from 1. */
  readonly number: number;
  /** Time since the first call of its key. */
  readonly elapsedMs: number;
  readonly method: string;
}

/** How an API key misbehaves, by the number of the call and the time alone. */
export interface Story {
  /** For people: the sentence behind the name of the key. */
  readonly about: string;
  /** Calls of each window that others leave; they use the rest as the window begins. Default: all. */
  readonly leaves?: Partial<Plan>;
  /** Returns what goes wrong with a call. Default: nothing. */
  readonly failureOf?: (call: StoryCall) => StoryFailure | undefined;
}

export type StoryName = 'banned' | 'down' | 'flaky' | 'lost' | 'paused' | 'revoked' | 'shared' | 'slow' | 'used-up';

/** Every story, named for what one sees. */
export const STORIES: Readonly<Record<StoryName, Story>> = {
  'used-up': {
    about: 'other programs leave 3 calls of each day',
    leaves: { perDay: 3 },
  },
  shared: {
    about: 'other programs leave 4 calls of each minute',
    leaves: { perMinute: 4 },
  },
  paused: {
    about: 'every second call is a 429, to retry after 20 s',
    failureOf: ({ number }) => (number % 2 === 0 ? { status: 429, retryAfter: 20 } : undefined),
  },
  slow: {
    about: 'every response takes 3 s',
    failureOf: () => ({ delayMs: 3_000 }),
  },
  flaky: {
    about: 'every third call fails with 500',
    failureOf: ({ number }) => (number % 3 === 0 ? { status: 500 } : undefined),
  },
  down: {
    about: '503 for a minute in each three, from 15 s after the first call',
    failureOf: ({ elapsedMs }) => (isWithin(15_000, elapsedMs % 180_000, 75_000) ? { status: 503 } : undefined),
  },
  lost: {
    about: 'creates happen, and their responses are lost',
    failureOf: ({ method }) => (method === 'GET' ? undefined : { isLost: true }),
  },
  revoked: {
    about: '401 after ten calls, for good',
    failureOf: ({ number }) => (number > 10 ? { status: 401 } : undefined),
  },
  banned: {
    about: 'a 429 at the second call, a ban of a minute at the third, and so on',
    failureOf({ number }) {
      if (number % 3 === 2) return { status: 429, retryAfter: 5 };
      return number % 3 === 0 ? { status: 403, retryAfter: 60 } : undefined;
    },
  },
};

export const STORY_NAMES = Object.keys(STORIES) as StoryName[];

function isWithin(from: number, value: number, until: number): boolean {
  return value >= from && value < until;
}
