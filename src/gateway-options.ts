import { z } from 'zod';
import { countingSleep, systemClock } from './clock.ts';
import type { Clock } from './clock.ts';
import { EXPECTED_PLAN, SHAPES } from './config.ts';
import { DURATIONS } from './durations.ts';
import { LIMITS } from './limits.ts';
import type { Limits } from './limits.ts';
import { silentLog } from './log.ts';
import type { Log } from './log.ts';
import type { AssumedPlan } from './plan.ts';
import { shownValue } from './shown-value.ts';

export interface GatewayOptions extends Partial<Limits> {
  /** The base address of the pet adoption service, with its `/v1`. */
  readonly petApiUrl: URL | string;
  /**
   * The API key for every request, or what finds the key for one; without a key, what needs one is UNAUTHENTICATED.
   * Either way the visitor's own Authorization header is not read. Default: each caller brings a key in that header.
   */
  readonly petApiKey?: ServerKey;
  /** The path that `fetch` and `handle` answer GraphQL at, GraphiQL's too. Default `/graphql`. */
  readonly endpoint?: string;
  /** How long one upstream call may take, in milliseconds. Default 5000. */
  readonly upstreamTimeoutMs?: number;
  /** How long a request may wait for the plan, in milliseconds. Default 10000. */
  readonly maxWaitMs?: number;
  /** How old an answer may be to be served as it is, in milliseconds. Default 1000. */
  readonly maxAgeMs?: number;
  /** How old an answer may be to be better than none, in milliseconds. Default 600000. */
  readonly maxStaleMs?: number;
  /**
   * Whether visitors may ask for fresher answers with `Cache-Control` where the key is the server's: each such request can
   * cost a call of its plan. Default false; who brings a key of its own always may.
   */
  readonly heedCacheControl?: boolean;
  /** What callers may call before the upstream tells. Default `auto`: the Free plan's figures, not known. */
  readonly plan?: AssumedPlan | PlanText;
  /** Whether the upstream was started with this gateway, so that no call came before. Default false. */
  readonly freshUpstream?: boolean;
  /** The Redis that replicas share what they spent in. Default: none, this is the only process. */
  readonly redisUrl?: string;
  /** Where one process without Redis keeps what it spent. Default: in memory. */
  readonly stateFile?: string;
  /** Hashes API keys wherever they are kept; 16 characters or more. Default: made once, and kept with them. */
  readonly keySecret?: string;
  /** The key that GraphiQL starts with; only one that is no secret. Default: a placeholder. */
  readonly graphiqlKey?: string;
  /** Whether browsers get GraphiQL at the endpoint. Default true. */
  readonly graphiql?: boolean;
  /** Whether the schema can be asked for; without it, errors do not suggest names of it either. Default true. */
  readonly introspection?: boolean;
  /** Origins whose pages may ask over HTTP, such as `https://pets.example`, or `*` for any. Default: none other. */
  readonly corsOrigins?: readonly string[];
  /**
   * Documents that clients may ask for by their ids: a manifest of GraphQL Code Generator, Relay or Apollo, as it stands in
   * its JSON file. Default: none.
   */
  readonly trustedDocuments?: Readonly<Record<string, unknown>>;
  /** Whether no other document runs over HTTP; `execute` runs any. Default false. */
  readonly requireTrustedDocuments?: boolean;
  /** Whether what happens is counted, and `admin` serves it. Default false. */
  readonly admin?: boolean;
  /** Where petql says what went wrong, faults of its own among it. Default: nowhere. */
  readonly log?: Log;
  /** The time, for tests. Default: the machine's, in which a sleep of it counts. */
  readonly clock?: Clock;
}

/** The key that the server has for its visitors: one for all, or what finds it for a request. */
export type ServerKey = string | ((request: Request) => Promise<FoundKey> | FoundKey);

/** Null and an empty text are as good as none. */
type FoundKey = string | null | undefined;

export type PlanText = 'auto' | 'business' | 'free' | 'pro' | `${number}/${number}`;

/** Options that were checked, with the defaults of those that were not given. */
export interface CheckedOptions extends Omit<GatewayOptions, keyof Limits | 'petApiUrl' | 'plan'>, Limits {
  readonly petApiUrl: URL;
  readonly endpoint: string;
  readonly upstreamTimeoutMs: number;
  readonly maxWaitMs: number;
  readonly maxAgeMs: number;
  readonly maxStaleMs: number;
  readonly heedCacheControl: boolean;
  readonly plan: AssumedPlan;
  readonly graphiql: boolean;
  readonly introspection: boolean;
  readonly corsOrigins: readonly string[];
  readonly requireTrustedDocuments: boolean;
  readonly admin: boolean;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * @throws TypeError that names every wrong option, and never repeats a secret.
 */
export function checkedOptions(options: GatewayOptions): CheckedOptions {
  const problems: string[] = [];
  const checked: Record<string, unknown> = {};
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(OPTIONS, name)) problems.push(`${name}: there is no such option`);
  }
  for (const [name, shape] of Object.entries<z.ZodType>(OPTIONS)) {
    const given: unknown = options[name as keyof GatewayOptions];
    const { success, data, error } = shape.safeParse(given);
    if (!success)
      problems.push(`${name}: ${error.issues[0]?.message}${SECRET.has(name) ? '' : `, got ${shownValue(given)}`}`);
    else if (data !== undefined) checked[name] = data;
  }
  if (checked['requireTrustedDocuments'] === true && checked['trustedDocuments'] === undefined) {
    problems.push('requireTrustedDocuments: expected trustedDocuments beside it, or nothing could run');
  }
  if (problems.length > 0) throw new TypeError(`createGateway: ${problems.join('; ')}`);
  return checked as unknown as CheckedOptions;
}

const OPTIONS = {
  petApiUrl: z.preprocess((given) => (given instanceof URL ? given.href : given), SHAPES.petApiUrl),
  petApiKey: z
    .union(
      [z.custom<ServerKey>((given) => typeof given === 'function'), SHAPES.petApiKey],
      'expected 1 to 512 visible ASCII characters, or a function that finds them',
    )
    .optional(),
  endpoint: z.custom<string>(isPath, 'expected a path such as /api/graphql').default('/graphql'),
  upstreamTimeoutMs: duration('upstreamTimeoutMs'),
  maxWaitMs: duration('maxWaitMs'),
  maxAgeMs: duration('maxAgeMs'),
  maxStaleMs: duration('maxStaleMs'),
  heedCacheControl: z.boolean('expected true or false').default(false),
  plan: z
    .union(
      [z.object({ perMinute: z.int().positive(), perDay: z.int().positive(), known: z.boolean() }), SHAPES.plan],
      EXPECTED_PLAN,
    )
    .prefault('auto'),
  freshUpstream: z.boolean('expected true or false').optional(),
  redisUrl: SHAPES.redisUrl.optional(),
  stateFile: SHAPES.stateFile.optional(),
  keySecret: SHAPES.keySecret.optional(),
  graphiqlKey: SHAPES.petApiKey.optional(),
  graphiql: z.boolean('expected true or false').default(true),
  introspection: z.boolean('expected true or false').default(true),
  corsOrigins: SHAPES.corsOrigins.default([]),
  trustedDocuments: z
    .custom<Record<string, unknown>>(isObject, 'expected an object of documents by their ids')
    .optional(),
  requireTrustedDocuments: z.boolean('expected true or false').default(false),
  admin: z.boolean('expected true or false').default(false),
  ...limitOptions(),
  log: functions<Log>('info', 'warn', 'error').default(silentLog),
  clock: functions<Clock>('now', 'elapsed').default(() => countingSleep(systemClock)),
} satisfies Record<keyof GatewayOptions, z.ZodType>;

/** Options whose values are never repeated. */
const SECRET: ReadonlySet<string> = new Set(['petApiKey', 'redisUrl', 'keySecret'] satisfies (keyof GatewayOptions)[]);

/** An object with these functions; it is used as it stands, not as a copy. Zod copies a default unless a function makes it. */
function functions<T>(...names: (keyof T & string)[]) {
  return z.custom<T>(
    (given: unknown) => names.every((name) => typeof (given as Partial<T> | null | undefined)?.[name] === 'function'),
    `expected an object with the functions ${names.join(', ')}`,
  );
}

function limitOptions() {
  const options = Object.entries(LIMITS).map(([name, { lowest, highest, fallback }]) => {
    return [name, wholeNumber(lowest, highest).default(fallback)];
  });
  return Object.fromEntries(options) as Record<keyof Limits, z.ZodType<number>>;
}

function isObject(given: unknown): boolean {
  return typeof given === 'object' && given !== null && !Array.isArray(given);
}

/** No pattern, and no slash at its end: it is compared with a request's path as it stands. */
function isPath(given: unknown): boolean {
  return typeof given === 'string' && /^(?:\/[\w.~-]+)+$/.test(given);
}

function duration(name: keyof typeof DURATIONS) {
  const { lowest, highest, fallback } = DURATIONS[name];
  return wholeNumber(lowest, highest).default(fallback);
}

function wholeNumber(lowest: number, highest: number) {
  const expected = `expected a whole number from ${lowest} to ${highest}`;
  return z.int(expected).min(lowest, expected).max(highest, expected);
}
