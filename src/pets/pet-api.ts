import type { Clock } from '../common/clock.ts';
import type { Events, UpstreamCallEvent } from '../common/events.ts';
import type { Int64 } from './int64.ts';
import { OnceLog } from '../common/log.ts';
import type { Log } from '../common/log.ts';
import type { NewPet, Pet } from './pet.ts';
import { FILTERS } from './read-key.ts';
import type { PetFilter } from './read-key.ts';
import { traceHeaders } from '../common/tracing.ts';
import type { Spans, TraceContext } from '../common/tracing.ts';
import { cacheAgeMs } from '../upstream/cache-age.ts';
import type { ResponseHeaders, TransportResponse } from '../upstream/exchange.ts';
import type { Transport, TransportRequest } from '../upstream/http-transport.ts';
import { evidenceOf } from '../upstream/evidence.ts';
import { failureDetails, failureOf, outcomeFromCache, outcomeOf } from '../upstream/outcome.ts';
import type { Expected, UpstreamAnswer, UpstreamOutcome } from '../upstream/outcome.ts';
import { readRateLimitHeaders } from '../upstream/rate-limit-headers.ts';
import { UpstreamLog } from '../upstream/upstream-log.ts';
import { LIST_LIMIT, createPetDecoders, encodeNewPet } from './wire.ts';
import type { DecodedList, PetDecoders } from './wire.ts';

export interface UpstreamCall extends Pick<TransportRequest, 'onSent'> {
  readonly apiKey: string;
  /** The trace that the call belongs to. */
  readonly trace?: TraceContext | undefined;
}

/** One of the operations: what petql sends, and what it expects. */
interface Exchange<T> extends Omit<Expected<T>, 'apiKey' | 'url'>, Pick<TransportRequest, 'body' | 'method' | 'path'> {
  readonly operation: UpstreamCallEvent['operation'];
}

interface PetApiOptions {
  /** The base URL with its version segment. */
  readonly baseUrl: URL;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly events: Events | undefined;
  readonly spans: Spans;
  readonly log: Log;
}

/** The three operations of pet-api.md, for any API key. They never throw: a failure is an outcome, an event and a span. */
export class PetApi {
  readonly #options: PetApiOptions;
  readonly #log: UpstreamLog;
  readonly #onceLog: OnceLog;
  readonly #basePath: string;
  readonly #origin: string;
  readonly #decoders: PetDecoders;
  #hasWorked = false;

  constructor(options: PetApiOptions) {
    this.#options = options;
    this.#log = new UpstreamLog(options.log, options.clock);
    this.#onceLog = new OnceLog(options.log);
    this.#basePath = options.baseUrl.pathname.replace(/\/+$/, '');
    this.#origin = options.baseUrl.origin;
    this.#decoders = createPetDecoders({
      onUnknownValue: (field, petId) =>
        this.#onceLog.warn({ petId }, `the pet API sends an unknown ${field}; such pets have the ${field} null`),
      onLeftOut: (problem) => this.#recordLeftOut(problem),
    });
  }

  /** Whether any call has succeeded: until then the base URL may be wrong, and a 404 proves nothing. */
  get hasWorked(): boolean {
    return this.#hasWorked;
  }

  /** `GET /pets`, always with the highest limit: it costs the same and shows more. */
  listPets(filter: PetFilter, call: UpstreamCall): Promise<UpstreamAnswer<DecodedList>> {
    const query = new URLSearchParams({ limit: String(LIST_LIMIT) });
    for (const name of FILTERS) if (filter[name] !== undefined) query.set(name, filter[name]);
    return this.#exchange(call, {
      operation: 'listPets',
      method: 'GET',
      path: `/pets?${query}`,
      isOfOne: false,
      success: 200,
      decode: ({ body, headers }) => {
        const list = this.#decoders.pets(body, filter);
        return { ...list, complete: list.complete && !isPageCut(headers, list.pets.length) };
      },
    });
  }

  /** `GET /pets/{petId}`, which the upstream withdraws on 5 December 2030. */
  getPet(id: Int64, call: UpstreamCall): Promise<UpstreamAnswer<Pet>> {
    return this.#exchange(call, {
      operation: 'getPet',
      method: 'GET',
      path: `/pets/${id}`,
      isOfOne: true,
      success: 200,
      decode: ({ body }) => this.#decoders.pet(body, id),
    });
  }

  /** `POST /pets`. */
  createPet(pet: NewPet, call: UpstreamCall): Promise<UpstreamAnswer<Pet>> {
    return this.#exchange(call, {
      operation: 'createPet',
      method: 'POST',
      path: '/pets',
      body: encodeNewPet(pet),
      isOfOne: false,
      success: 201,
      decode: ({ body }) => this.#decoders.pet(body),
    });
  }

  #recordLeftOut(problem: string): void {
    this.#options.events?.leftOut();
    const message = 'pets of a list break the contract of the pet API; the list is served without them';
    this.#onceLog.warn({ problem }, message, problem);
  }

  async #exchange<T>(call: UpstreamCall, exchange: Exchange<T>): Promise<UpstreamAnswer<T>> {
    const { clock, events, spans } = this.#options;
    const { operation } = exchange;
    const sentAtMs = clock.elapsed();
    const span = spans.call(operation, call.trace);

    const send = () => this.#send({ ...call, trace: span?.trace }, exchange);
    const answer = await (span ? span.send(send) : send());

    const { outcome, status } = answer;
    const reason = outcome.kind === 'no-answer' ? outcome.reason : outcome.kind;
    span?.end(status, errorType(answer, reason));
    events?.upstreamCall({ operation, status, reason, tookMs: clock.elapsed() - sentAtMs });
    this.#log.logHealth(operation, answer, sentAtMs);
    return answer;
  }

  async #send<T>({ apiKey, trace, onSent }: UpstreamCall, exchange: Exchange<T>): Promise<UpstreamAnswer<T>> {
    const { transport, clock } = this.#options;
    const { method, path, body } = exchange;
    const result = await transport.send({
      method,
      path: this.#basePath + path,
      headers: {
        authorization: `Bearer ${apiKey}`,
        accept: 'application/json',
        // A cache before the upstream would show data from before this call.
        'cache-control': 'no-cache',
        // Without this any coding is acceptable (RFC 9110, section 12.5.3), and each costs time to decode.
        'accept-encoding': 'identity',
        'user-agent': 'petql',
        ...(trace && traceHeaders(trace)),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      caller: apiKey,
      onSent,
    });

    const isFailure = result.kind === 'failure';
    const head = isFailure ? result.head : result;
    const ageMs = head && cacheAgeMs(head.headers);
    const own = isFailure ? failureOf(result) : this.#checkBasePath(result, exchange, apiKey);
    const outcome = head && ageMs !== undefined ? outcomeFromCache(own, head.status) : own;
    return {
      outcome,
      ...evidenceOf(outcome, {
        sent: !isFailure || result.sent,
        status: head?.status,
        headers: head && readRateLimitHeaders(head.headers, clock.now()),
        isList: exchange.operation === 'listPets',
        isCached: ageMs !== undefined,
      }),
      ageMs,
      failure: outcome.kind === 'ok' ? undefined : failureDetails(outcome),
      status: head?.status,
    };
  }

  /** Before any success, a 404 is about the base URL: whatever its body says where it has no version, or names no single pet. */
  #checkBasePath<T>(response: TransportResponse, exchange: Exchange<T>, apiKey: string): UpstreamOutcome<T> {
    const outcome = outcomeOf(response, { ...exchange, apiKey, url: this.#origin + this.#basePath + exchange.path });
    if (outcome.kind === 'ok') this.#hasWorked = true;
    const isAboutPet = exchange.isOfOne && /\/v\d+$/.test(this.#basePath);
    if (this.#hasWorked || response.status !== 404 || isAboutPet) return outcome;

    const path = this.#options.baseUrl.pathname;
    this.#onceLog.warn({ path }, 'the pet API responds with 404 below this path; check the base URL and its /v1');
    return { kind: 'wrong-base-path' };
  }
}

/** Returns the `error.type` of OpenTelemetry's HTTP clients: the status where that is the error, else petql's reason. */
function errorType({ outcome, status }: UpstreamAnswer<unknown>, reason: string): string | undefined {
  if (outcome.kind === 'ok') return undefined;
  const isStatusError = outcome.kind !== 'no-answer' && outcome.kind !== 'unreadable';
  return isStatusError ? String(status) : reason;
}

/**
 * Whether headers say that a list of so many pets is a page of more. pet-api.md does not show the paging of its "paginated list";
 * these headers are what json-server, Django, Rails and others send.
 */
function isPageCut(headers: ResponseHeaders, pets: number): boolean {
  const [nextPage = ''] = [headers['x-next-page'] ?? []].flat();
  const totals = ['x-total-count', 'x-total', 'content-range'].flatMap((name) => headers[name] ?? []);
  const isTotalHigher = totals.some((text) => Number(TOTAL.exec(text)?.[1]) > pets);
  return isTotalHigher || /^\d+$/.test(nextPage) || hasNextPage(headers['link']);
}

/** `200`, or the last number of `Content-Range: pets 0-49/200`. */
const TOTAL = /(?:^|\/)(\d{1,15})$/;

/** Whether a `Link` header has the relation "next" (RFC 8288). */
function hasNextPage(link: string | string[] | undefined): boolean {
  const params = [link ?? []].flat().flatMap((value) => value.split(/[;,]/));
  return params.some((param) => /^\s*rel\s*=\s*(?:"[^"]*\bnext\b|next\b)/i.test(param));
}
