import type { Clock } from '../common/clock.ts';
import type { Log, LogLevel } from '../common/log.ts';

/** The options of `createGateway`. `settings.ts` has the bounds and the default of each. */
export interface GatewayOptions {
  /** The base URL of the pet API, with its `/v1`. */
  readonly petApiUrl: URL | string;
  /**
   * The API key for all requests, or a function that returns the key of a request; without a key the request is
   * UNAUTHENTICATED. The client's own Authorization header is then not read. Default: the key in that header.
   */
  readonly petApiKey?: ServerKey | undefined;
  /** The plan of each API key: an assumption, until response headers tell the limits. Default `auto`: the Free plan until then. */
  readonly plan?: PlanText | undefined;
  /**
   * The part of each minute and day of every API key that petql uses at most, in percent: the rest is left to other programs with the
   * key. Default 100.
   */
  readonly planShare?: number | undefined;
  /** Max wait of a request for quota, in milliseconds. Default 10000. */
  readonly maxWaitMs?: number | undefined;
  /** Max age of fresh data, in milliseconds. Default 1000. */
  readonly maxAgeMs?: number | undefined;
  /** Max age of data that is served to save quota, without quota, or when calls fail, in milliseconds. Default 600000. */
  readonly maxStaleMs?: number | undefined;
  /**
   * Whether clients may set the age of data with `Cache-Control` where the key is the server's: each such request can cost a
   * call. Default false; clients with their own keys always may.
   */
  readonly allowClientCacheControl?: boolean | undefined;
  /**
   * The request header that names the visitor behind a request, such as `x-forwarded-for`: its last entry counts, an IPv6 address by
   * its /64. No visitor uses more calls of an API key than it leaves to the others. Default: none, visitors are not told apart.
   */
  readonly visitorHeader?: string | undefined;
  /**
   * The Redis in which replicas share quota and idempotency records: its URL, those of nodes of a Cluster with commas between
   * them, or `redis+sentinel://host:26379,host2:26379/NAME` for the master of this name. Default: none, this is the only process.
   */
  readonly redisUrl?: string | undefined;
  /** The file in which one process without Redis keeps its accounts. Default: in memory. */
  readonly stateFile?: string | undefined;
  /** Hashes stored API keys (HMAC); at least 16 characters. Default: none, they are hashed without one (SHA-256). */
  readonly keySecret?: string | undefined;
  /** Whether browsers get GraphiQL at the endpoint, where it can query the schema and run any document. Default true. */
  readonly graphiql?: boolean | undefined;
  /** Whether clients may query the schema; without it, errors do not suggest its names either. Default true. */
  readonly introspection?: boolean | undefined;
  /** Documents that clients may run by id: a manifest of GraphQL Code Generator, Relay or Apollo. Default: none. */
  readonly trustedDocuments?: Readonly<Record<string, unknown>> | undefined;
  /** Whether no other document runs over HTTP; `execute` runs any. Default false. */
  readonly requireTrustedDocuments?: boolean | undefined;
  /**
   * Origins whose pages may send requests, such as `https://pets.example`, an app's such as `capacitor://localhost`, or `*` for any.
   * `null` is the origin of each sandboxed frame. Default: none.
   */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Max bytes of a request's body. Default 65536. */
  readonly maxBodyBytes?: number | undefined;
  /** Max tokens of a document. Default 1000; tools that read the schema need up to 225. */
  readonly maxTokens?: number | undefined;
  /** Max levels of fields, with those in fragments, and without those of introspection. Default 20. */
  readonly maxDepth?: number | undefined;
  /** Max aliases, those of a fragment each time that it is used. Default 100. */
  readonly maxAliases?: number | undefined;
  /**
   * Max fields of an operation's result: each counts once per item of the lists around it, an id or a write 20 times. A
   * variable counts as a `limit` of 100, or as 100 ids. Default 20000; tools that read the schema need up to 15000.
   */
  readonly maxCost?: number | undefined;
  /** Max upstream calls of an operation at worst, counted before any is sent. Default 200. */
  readonly maxUpstreamCalls?: number | undefined;
  /** Max wait for a connection to the pet API, and max time of a call that has one, in milliseconds. Default 5000. */
  readonly upstreamTimeoutMs?: number | undefined;
  /** Lowest level of the lines that `log` gets. Default: `warn` for the console, else all. */
  readonly logLevel?: LogLevel | undefined;
  /** The HTTP proxy for calls to the pet API, such as `http://user:password@proxy.example:3128`. Default: none. */
  readonly proxy?: URL | string | undefined;
  /** The path of GraphQL and GraphiQL for `fetch` and `handle`, also with a slash at its end. Default `/graphql`. */
  readonly endpoint?: string | undefined;
  /** The API key that GraphiQL starts with; only one that is no secret. Default: a placeholder. */
  readonly graphiqlKey?: string | undefined;
  /** Whether GraphiQL leads to tabs with the demo keys of the sandbox, one for each bad day. Default false. */
  readonly graphiqlBadDays?: boolean | undefined;
  /** Whether metrics are counted, and `admin` serves them. Default false. */
  readonly admin?: boolean | undefined;
  /** Gets petql's log lines. Default: none. */
  readonly log?: Log | undefined;
  /** The time, for tests: whatever moves it, data ages by it. Give the sandbox the same one. Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** Takes the calls in place of real connections: the sandbox's, or a `Dispatcher` of undici. Default: none. */
  readonly dispatcher?: CallDispatcher | undefined;
  /** Replaces the connection to `redisUrl`, for tests of petql itself. Default: none. */
  readonly redisConnection?: RedisDouble | undefined;
}

/** The API key for all requests, or a function that returns the key of a request. */
export type ServerKey = string | ((request: Request) => Promise<FoundKey> | FoundKey);

/** Null and an empty text mean no key. */
type FoundKey = string | null | undefined;

export type PlanText = 'auto' | 'business' | 'free' | 'pro' | `${number}/${number}`;

/** undici's `Dispatcher`, by name alone: types of the library import no other package's. */
export interface CallDispatcher {
  readonly dispatch: (options: never, handler: never) => boolean;
  readonly destroy: () => Promise<void>;
}

interface RedisDouble {
  readonly compareAndSet: (...args: never) => Promise<string>;
  readonly close: () => void;
}
