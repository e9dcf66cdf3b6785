import type { ExecutionResult, OperationTypeNode } from 'graphql';
import type { Caller } from '../caller/caller.ts';
import type { Callers } from '../caller/callers.ts';
import type { ReadsAndWrites } from '../caller/cost-estimate.ts';
import type { QuotaView } from '../caller/quota.ts';
import type { CachedRead, RequestPets } from '../caller/request-pets.ts';
import { NO_USAGE } from '../caller/usage.ts';
import type { Usage } from '../caller/usage.ts';
import { PetqlError } from '../errors.ts';
import type { RequestTerms } from '../reads/read-request.ts';
import type { ResolverContext } from '../schema/builder.ts';
import type { OperationSpan } from '../tracing.ts';
import type { HttpRequest } from './http/http-message.ts';
import type { ResultExtensions } from './operation.ts';

/** What petql learns about one GraphQL request on its way: each plugin adds its part, and the response is made of it. */
export interface RequestState {
  readonly request: HttpRequest;
  /** In the log and in the response's `X-Request-Id`. */
  readonly id: string;
  readonly startedAtMs: number;
  /** The calls of the operation belong to its trace. Undefined where the request is none. */
  readonly span: OperationSpan | undefined;
  /** Undefined where the document does not name it, or is none. */
  operation?: OperationName | undefined;
  context?: RequestContext;
  /** What the operation has cost; undefined where nothing ran. */
  usage?: ResultExtensions['petql'];
  /** The finished data and errors. */
  result?: ExecutionResult;
  /** The result's data as JSON. */
  data?: string | undefined;
}

export interface OperationName {
  readonly type: OperationTypeNode;
  readonly name: string | undefined;
}

/** What Yoga hands to each hook. */
export interface ServerContext extends Record<string, unknown> {
  readonly state: RequestState;
}

/** Yoga's types of some hooks leave the server context open. */
export function stateOf(serverContext: object): RequestState {
  return (serverContext as ServerContext).state;
}

interface RequestContextOptions {
  readonly callers: Callers;
  /** The API key, or why there is none. */
  readonly apiKey: string | PetqlError;
  readonly terms: RequestTerms;
  /** Whether the request wants to know its cost alone. */
  readonly isDryRun: boolean;
}

/** One request's use of its caller. */
export class RequestContext {
  readonly isDryRun: boolean;
  /** Why nothing can be read or written: there is no API key, or the upstream rejected it. Undefined otherwise. */
  readonly keyError: PetqlError | undefined;
  readonly #options: RequestContextOptions;
  /** Undefined before the first read, write or look at the quota: anybody can make up API keys. */
  #caller: Caller | undefined;
  /** Undefined before the first read or write. */
  #pets: RequestPets | undefined;
  /** Whether the response is made of reads only. */
  #isRepeatable: boolean;

  constructor(options: RequestContextOptions) {
    const { apiKey, callers, isDryRun } = options;
    this.#options = options;
    this.isDryRun = isDryRun;
    this.keyError = apiKey instanceof PetqlError ? apiKey : callers.keyError(apiKey);
    this.#isRepeatable = this.keyError === undefined && !isDryRun;
  }

  /** Returns what resolvers see. An error of the key fails the whole field with one error. */
  forResolvers(): ResolverContext {
    return {
      pets: {
        list: (filter, limit) => this.#usePets().list(filter, limit),
        byId: (id) => this.#usePets().byId(id),
        create: (pet, idempotencyKey) => this.#usePets().create(pet, idempotencyKey),
      },
      quota: () => this.#readQuota(),
    };
  }

  /** The hash of the API key, for the log; undefined where the request has none. */
  get keyName(): string | undefined {
    const { apiKey, callers } = this.#options;
    return apiKey instanceof PetqlError ? undefined : callers.nameOf(apiKey);
  }

  /** What the request has cost so far. */
  get usage(): Usage {
    return this.#pets?.usage ?? NO_USAGE;
  }

  /** Counts the calls that this request has saved, once it is over. */
  recordSavings(): void {
    if (this.#pets) this.#caller?.recordSavings(this.#pets.savings);
  }

  /** Counts what the operation has used for its name and its client, once it is over. */
  recordUse(operation: string | undefined, client: string | undefined, isRefused: boolean): void {
    const { upstreamCalls: callsMade, savedCalls: callsSaved } = this.usage;
    this.#caller?.recordUse({ operation, client, callsMade, callsSaved, refused: isRefused ? 1 : 0 });
  }

  /** The caller's quota as this process knows it, for the headers of the response; undefined before its first call. */
  get latestQuota(): QuotaView | undefined {
    const { apiKey, callers } = this.#options;
    const caller = this.#caller ?? (apiKey instanceof PetqlError ? undefined : callers.find(apiKey));
    return caller?.latestQuota(this.#options.terms.visitor);
  }

  /** Returns the maximum of calls that this can cost now, retries aside; 0 without an API key. */
  maxCalls({ reads, writes }: ReadsAndWrites): number {
    if (this.#options.apiKey instanceof PetqlError) return 0;
    return this.#useCaller().maxCalls(reads, this.#options.terms.freshness) + writes;
  }

  /** Returns the minimum wait of the last of these calls for the quota. */
  async waitFor(calls: number): ReturnType<Caller['waitFor']> {
    if (this.#options.apiKey instanceof PetqlError) return { waitMs: 0, window: undefined };
    return this.#useCaller().waitFor(calls, this.#options.terms);
  }

  /** What the request has read; undefined where its response depends on anything else. */
  get cachedReads(): readonly CachedRead[] | undefined {
    return this.#isRepeatable ? this.#pets?.cachedReads : undefined;
  }

  /** Reads the same again from memory; returns false, and reads nothing, where any result has changed. */
  repeat(reads: readonly CachedRead[]): boolean {
    return this.#isRepeatable && this.#usePets().repeat(reads);
  }

  /** Ends the request's use of its caller. */
  end(): void {
    if (this.#caller) this.#options.callers.end(this.#caller);
  }

  /** Reads the quota that the reads beside it have left. */
  async #readQuota(): Promise<QuotaView> {
    this.#isRepeatable = false;
    const caller = this.#useCaller();
    // Resolvers run in one turn, so the reads after this field count too.
    await Promise.resolve();
    await this.#pets?.settled();
    return caller.readQuota(this.#options.terms.visitor);
  }

  /** @throws PetqlError where nothing can be read or written. */
  #usePets(): RequestPets {
    if (this.keyError) throw this.keyError;
    this.#pets ??= this.#useCaller().pets(this.#options.terms);
    return this.#pets;
  }

  /** @throws PetqlError without an API key. */
  #useCaller(): Caller {
    const { apiKey, callers } = this.#options;
    if (apiKey instanceof PetqlError) throw apiKey;
    this.#caller ??= callers.begin(apiKey);
    return this.#caller;
  }
}
