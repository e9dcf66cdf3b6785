import type { Clock } from '../clock.ts';
import type { Events, UpstreamCallEvent } from '../events.ts';
import type { Int64 } from '../int64.ts';
import type { Log } from '../log.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';
import { traceHeaders } from '../tracing.ts';
import type { Spans, TraceContext } from '../tracing.ts';
import type { Transport, TransportFailure } from './http-transport.ts';
import type { TransportRequest, TransportResponse } from './http-transport.ts';
import { readRateLimitHeaders } from './rate-limit-headers.ts';
import type { RateLimitHeaders } from './rate-limit-headers.ts';
import { ContractBreach, LIST_LIMIT, createPetDecoders, decodeError, encodeNewPet } from './wire.ts';
import type { WireError } from './wire.ts';

/** The response to one `GET /pets`. */
interface PetList {
  readonly pets: readonly Pet[];
  /** Whether these are all pets of the filter: fewer than the upstream can list, and no next page. */
  readonly complete: boolean;
}

/** Why a call failed. `code` is that of the Error body, or of the transport. */
export type UpstreamFailure =
  | { readonly kind: 'unauthenticated' | 'forbidden' | 'rate-limited' }
  /** 404 with the Error body: there is no such pet. */
  | { readonly kind: 'not-found' }
  /** 410, or a 404 or 405 without the Error body: the upstream no longer has this route. */
  | { readonly kind: 'route-gone'; readonly status: number }
  /** 404 before any success, where the base URL has no version segment: every call would fail alike. */
  | { readonly kind: 'wrong-base-path' }
  /** 400 with the Error body. */
  | { readonly kind: 'invalid'; readonly error: WireError }
  /** Any other status. */
  | { readonly kind: 'failed'; readonly status: number; readonly code: string | undefined }
  /** A 2xx that breaks the contract; `problem` says which field, and `foreign` that the body is none of the upstream's own. */
  | { readonly kind: 'unreadable'; readonly status: number; readonly problem: string; readonly foreign: boolean }
  /** No response, or a 2xx that broke off. */
  | { readonly kind: 'no-answer'; readonly reason: TransportFailure['reason']; readonly code?: string };

export type UpstreamOutcome<T> = { readonly kind: 'ok'; readonly value: T } | UpstreamFailure;

export interface UpstreamAnswer<T> {
  readonly outcome: UpstreamOutcome<T>;
  /** Whether the upstream may have received the call, and so may have counted it. */
  readonly sent: boolean;
  /** Of the response, even if it broke off; undefined where none came. */
  readonly status?: number | undefined;
  /** From every response, errors and broken ones included; undefined where none came. */
  readonly rateLimit: RateLimitHeaders | undefined;
}

interface UpstreamCall {
  readonly apiKey: string;
  /** The trace that the call belongs to. */
  readonly trace?: TraceContext | undefined;
  /** It has a connection, and is sent. */
  readonly onSent?: () => void;
}

interface PetApiOptions {
  /** With its version segment. */
  readonly baseUrl: URL;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly events: Events | undefined;
  readonly spans: Spans;
  readonly log: Log;
}

interface Exchange<T> extends Pick<TransportRequest, 'body' | 'method' | 'path'> {
  readonly operation: UpstreamCallEvent['operation'];
  /** The status of a success. */
  readonly success: 200 | 201;
  /** @throws ContractBreach */
  readonly decode: (response: TransportResponse) => T;
}

/** At most one log line a minute about an upstream that comes and goes. */
const LOG_EVERY_MS = 60_000;

export type PetApi = ReturnType<typeof createPetApi>;

/** The three operations of pet-api.md, for any API key. They never throw: a failure is an outcome, an event and a span. */
export function createPetApi({ baseUrl, transport, clock, events, spans, log }: PetApiOptions) {
  const basePath = baseUrl.pathname.replace(/\/+$/, '');
  const logged = new Set<string>();
  let isUnreachable = false;
  let loggedAtMs = -Infinity;
  let mayMissVersion = !/\/v\d+$/.test(basePath);
  const decoders = createPetDecoders((petId) => {
    warnOnce({ petId }, 'the pet API sends an unknown status; such pets have the status null');
  });

  return {
    /** `GET /pets`, always with the highest limit: it costs the same and shows more. */
    listPets: (status: PetStatus | undefined, call: UpstreamCall) =>
      exchange<PetList>(call, {
        operation: 'listPets',
        method: 'GET',
        success: 200,
        path: `/pets?limit=${LIST_LIMIT}${status === undefined ? '' : `&status=${status}`}`,
        decode({ body, headers }) {
          const pets = decoders.pets(body, status);
          return { pets, complete: pets.length < LIST_LIMIT && !hasNextPage(headers['link']) };
        },
      }),
    /** `GET /pets/{petId}`, which the upstream withdraws on 5 December 2030. */
    getPet: (id: Int64, call: UpstreamCall) =>
      exchange<Pet>(call, {
        operation: 'getPet',
        method: 'GET',
        success: 200,
        path: `/pets/${id}`,
        decode: ({ body }) => decoders.pet(body, id),
      }),
    /** `POST /pets`. */
    createPet: (pet: NewPet, call: UpstreamCall) =>
      exchange<Pet>(call, {
        operation: 'createPet',
        method: 'POST',
        success: 201,
        path: '/pets',
        body: encodeNewPet(pet),
        decode: ({ body }) => decoders.pet(body),
      }),
  };

  async function exchange<T>(call: UpstreamCall, request: Exchange<T>): Promise<UpstreamAnswer<T>> {
    const { operation } = request;
    const sentAtMs = clock.elapsed();
    const span = spans.call(operation, call.trace);
    const answer = await send({ ...call, trace: span?.trace }, request);
    const { outcome, status } = answer;
    const reason = outcome.kind === 'no-answer' ? outcome.reason : outcome.kind;
    // `error.type` of OpenTelemetry's HTTP clients: the status where that is the error, else petql's name of it.
    const isStatusError = outcome.kind !== 'no-answer' && outcome.kind !== 'unreadable';
    span?.end(status, outcome.kind === 'ok' ? undefined : isStatusError ? String(status) : reason);
    events?.upstreamCall({ operation, status, reason, tookMs: clock.elapsed() - sentAtMs });
    logReachability(answer);
    return answer;
  }

  async function send<T>(
    { apiKey, trace, onSent }: UpstreamCall,
    { method, path, body, success, decode }: Exchange<T>,
  ): Promise<UpstreamAnswer<T>> {
    const result = await transport.send({
      method,
      path: basePath + path,
      headers: {
        authorization: `Bearer ${apiKey}`,
        accept: 'application/json',
        // Without this any coding is acceptable (RFC 9110, section 12.5.3), and petql decodes none.
        'accept-encoding': 'identity',
        'user-agent': 'petql',
        ...(trace && traceHeaders(trace)),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      ...(onSent && { onSent }),
    });
    const head = result.kind === 'failure' ? result.head : result;
    return {
      outcome:
        result.kind === 'failure'
          ? failureOf(result)
          : checkBasePath(result.status, outcomeOf(result, success, decode)),
      sent: result.kind === 'response' || result.sent,
      status: head?.status,
      rateLimit: head && readRateLimitHeaders(head.headers, clock.now()),
    };
  }

  /** A wrong host name or an expired certificate shows nowhere but in this log line. */
  function logReachability({ outcome, sent }: UpstreamAnswer<unknown>): void {
    if (outcome.kind === 'no-answer' && outcome.reason === 'unreachable') {
      if (isUnreachable || clock.elapsed() - loggedAtMs < LOG_EVERY_MS) return;
      isUnreachable = true;
      loggedAtMs = clock.elapsed();
      log.warn({ reason: outcome.code }, 'pet API unreachable');
    } else if (isUnreachable && sent) {
      isUnreachable = false;
      log.info({}, 'pet API reachable again');
    }
  }

  /** Before any success, a 404 below a base URL without a version segment is about the URL, whatever its body says. */
  function checkBasePath<T>(status: number, outcome: UpstreamOutcome<T>): UpstreamOutcome<T> {
    if (outcome.kind === 'ok') mayMissVersion = false;
    if (!mayMissVersion || status !== 404) return outcome;
    warnOnce(
      { path: baseUrl.pathname },
      'the pet API responds with 404 below this path; is /v1 missing from the base URL?',
    );
    return { kind: 'wrong-base-path' };
  }

  function warnOnce(details: object, message: string): void {
    if (!logged.has(message)) log.warn(details, message);
    logged.add(message);
  }
}

/** What these statuses mean needs no body. */
const BY_STATUS: Readonly<Record<number, UpstreamFailure>> = {
  401: { kind: 'unauthenticated' },
  403: { kind: 'forbidden' },
  429: { kind: 'rate-limited' },
};

/** An error status holds without the rest of its body; a success does not. */
function failureOf({ head, reason, code }: TransportFailure): UpstreamFailure {
  if (!head || (head.status >= 200 && head.status < 300)) return { kind: 'no-answer', reason, ...(code && { code }) };
  return BY_STATUS[head.status] ?? { kind: 'failed', status: head.status, code: undefined };
}

function outcomeOf<T>(response: TransportResponse, success: number, decode: Exchange<T>['decode']): UpstreamOutcome<T> {
  const { status, body } = response;
  if (status === success) {
    try {
      return { kind: 'ok', value: decode(response) };
    } catch (error) {
      if (!(error instanceof ContractBreach)) throw error;
      return { kind: 'unreadable', status, problem: error.message, foreign: error.foreign };
    }
  }
  if (status >= 200 && status < 300) {
    return { kind: 'unreadable', status, problem: `the status: expected ${success}`, foreign: true };
  }
  const known = BY_STATUS[status];
  if (known) return known;
  const error = decodeError(body);
  if (status === 400 && error) return { kind: 'invalid', error };
  if (status === 404 && error?.status === 404) return { kind: 'not-found' };
  if (status === 404 || status === 405 || status === 410) return { kind: 'route-gone', status };
  return { kind: 'failed', status, code: error?.code };
}

/** A `Link` header with the relation "next" (RFC 8288). pet-api.md does not show the paging of its "paginated list". */
function hasNextPage(link: string | string[] | undefined): boolean {
  const params = [link ?? []].flat().flatMap((value) => value.split(/[;,]/));
  return params.some((param) => /^\s*rel\s*=\s*(?:"[^"]*\bnext\b|next\b)/i.test(param));
}
