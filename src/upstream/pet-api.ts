import type { Clock } from '../clock.ts';
import type { Int64 } from '../int64.ts';
import type { NewPet, Pet, PetStatus } from '../pet.ts';
import type { TraceContext } from '../trace-context.ts';
import { readRateLimitHeaders } from './rate-limit-headers.ts';
import type { RateLimitHeaders } from './rate-limit-headers.ts';
import type { Transport, TransportFailure, TransportRequest, TransportResponse } from './transport.ts';
import { createUnchangedBodies } from './unchanged-bodies.ts';
import { LISTING_LIMIT, decodeError, decodePet, decodePets, encodeNewPet, saysNotFound } from './wire.ts';
import type { Decoded, Problem, WireError } from './wire.ts';

/** The answer to one `GET /pets`. */
export interface Listing {
  readonly pets: readonly Pet[];
  /** Whether these are all the animals in the filter: fewer than could be listed, and no next page. */
  readonly complete: boolean;
}

/** Why a call brought nothing. */
export type UpstreamFailure =
  /** 401 */
  | { readonly kind: 'unauthenticated' }
  /** 403 */
  | { readonly kind: 'forbidden' }
  /** 404 with the Error body: there is no such animal. */
  | { readonly kind: 'not-found' }
  /** 410, or a 404 or 405 without the Error body: there is no such route any more. */
  | { readonly kind: 'route-gone'; readonly status: number }
  /** 400 with the Error body. */
  | { readonly kind: 'invalid'; readonly error: WireError }
  /** 429 */
  | { readonly kind: 'rate-limited' }
  /** Any other status; `code` is the Error body's, where there is one. */
  | { readonly kind: 'failed'; readonly status: number; readonly code: string | undefined }
  /** A status in the 200s, and an answer that breaks the contract; `problem` says which field. */
  | (Problem & { readonly kind: 'unreadable'; readonly status: number })
  /** No answer, or a success that is not whole. */
  | { readonly kind: 'no-answer'; readonly reason: TransportFailure['reason'] };

export type UpstreamOutcome<T> = { readonly kind: 'ok'; readonly value: T } | UpstreamFailure;

export interface UpstreamAnswer<T> {
  readonly outcome: UpstreamOutcome<T>;
  /** Whether the upstream may have seen the call, and so may have counted it. */
  readonly sent: boolean;
  /** Of the response, be it cut short; undefined where none came. */
  readonly status?: number | undefined;
  /** From every response, errors and cut ones included; undefined where none came. */
  readonly rateLimit: RateLimitHeaders | undefined;
  /** When the operation goes, in milliseconds since the epoch, where the response says so (`Sunset`, RFC 8594). */
  readonly sunsetMs?: number;
}

/** The three operations of pet-api.md, for any key. They never throw: what goes wrong is in the answer. */
export interface PetApi {
  /** `GET /pets`, always with the highest limit: it costs the same and tells more. */
  listPets(status: PetStatus | undefined, call: UpstreamCall): Promise<UpstreamAnswer<Listing>>;
  /** `GET /pets/{petId}`, which the upstream withdraws on 5 December 2030. */
  getPet(id: Int64, call: UpstreamCall): Promise<UpstreamAnswer<Pet>>;
  /** `POST /pets`. */
  createPet(pet: NewPet, call: UpstreamCall): Promise<UpstreamAnswer<Pet>>;
}

export interface UpstreamCall {
  readonly apiKey: string;
  /** The trace that it belongs to. */
  readonly trace?: TraceContext | undefined;
}

export function createPetApi(transport: Transport, clock: Clock): PetApi {
  const listings = createUnchangedBodies<readonly Pet[]>((body, status) => withStatus(decodePets(body), status));
  return {
    listPets: (status, call) => {
      const filter = status === undefined ? '' : `&status=${status}`;
      return exchange({ method: 'GET', path: `/pets?limit=${LISTING_LIMIT}${filter}` }, call, (response) =>
        listing(listings.read(status ?? ANY_STATUS, response.body), response),
      );
    },
    getPet: (id, call) =>
      exchange({ method: 'GET', path: `/pets/${id}` }, call, (response) => theAnimal(decodePet(response.body), id)),
    createPet: (pet, call) =>
      exchange({ method: 'POST', path: '/pets', body: encodeNewPet(pet) }, call, (response) =>
        theAddedAnimal(decodePet(response.body), response.status, pet),
      ),
  };

  async function exchange<T>(
    request: Pick<TransportRequest, 'body' | 'method' | 'path'>,
    { apiKey, trace }: UpstreamCall,
    decode: (response: TransportResponse) => Decoded<T>,
  ): Promise<UpstreamAnswer<T>> {
    const response = await transport.send({
      ...request,
      isPlain: (status) => status in PLAIN,
      headers: {
        authorization: `Bearer ${apiKey}`,
        accept: 'application/json',
        'user-agent': 'petql',
        ...(trace ? { traceparent: trace.traceparent } : {}),
        ...(trace?.tracestate === undefined ? {} : { tracestate: trace.tracestate }),
        ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
    });
    const { head } = response.kind === 'failure' ? response : { head: response };
    return {
      outcome:
        response.kind === 'failure'
          ? failureOf(response)
          : outcomeOf(response, request.method === 'GET' ? [200] : [201, 200], decode),
      sent: response.kind === 'response' || response.sent,
      status: head?.status,
      rateLimit: head && readRateLimitHeaders(head.headers, clock.now()),
      ...(head && readSunset(head.headers)),
    };
  }
}

/** What these statuses say is said without a body. */
const PLAIN: Readonly<Record<number, UpstreamFailure>> = {
  401: { kind: 'unauthenticated' },
  403: { kind: 'forbidden' },
  429: { kind: 'rate-limited' },
};

/** A refusal is one without the rest of its body; a success is none. */
function failureOf({ head, reason }: TransportFailure): UpstreamFailure {
  if (!head || (head.status >= 200 && head.status < 300)) return { kind: 'no-answer', reason };
  return { kind: 'failed', status: head.status, code: undefined };
}

function outcomeOf<T>(
  response: TransportResponse,
  good: readonly number[],
  decode: (response: TransportResponse) => Decoded<T>,
): UpstreamOutcome<T> {
  const { status, headers, body } = response;
  if (status >= 200 && status < 300) {
    // A part of an answer, or one that somebody has changed on its way, may look like a whole one.
    if (!good.includes(status)) {
      return { kind: 'unreadable', status, problem: `the status: expected ${good[0]}`, foreign: true };
    }
    // Nothing but plain bodies was asked for.
    if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity') {
      return { kind: 'unreadable', status, problem: 'the body: expected no content encoding', foreign: true };
    }
    const decoded = decode(response);
    if (decoded.ok) return { kind: 'ok', value: decoded.value };
    const { problem, foreign } = decoded;
    return { kind: 'unreadable', status, problem, foreign };
  }
  const plain = PLAIN[status];
  if (plain) return plain;
  const error = decodeError(body);
  if (status === 400 && error) return { kind: 'invalid', error };
  if (status === 404 && saysNotFound(body)) return { kind: 'not-found' };
  if (status === 404 || status === 405 || status === 410) return { kind: 'route-gone', status };
  return { kind: 'failed', status, code: error?.code };
}

const ANY_STATUS = '';

function withStatus(decoded: Decoded<Pet[]>, status: string): Decoded<readonly Pet[]> {
  if (!decoded.ok || status === ANY_STATUS) return decoded;
  const stranger = decoded.value.findIndex((pet) => pet.status !== status);
  if (stranger < 0) return decoded;
  return { ok: false, problem: `[${stranger}].status: expected the status that was asked for`, foreign: false };
}

function listing(decoded: Decoded<readonly Pet[]>, { headers }: TransportResponse): Decoded<Listing> {
  if (!decoded.ok) return decoded;
  const complete = decoded.value.length < LISTING_LIMIT && !hasNextPage(headers['link']);
  return { ok: true, value: { pets: decoded.value, complete } };
}

/** A Deprecation header alone says nothing that pet-api.md has not said; a Sunset says when. */
function readSunset({ sunset }: TransportResponse['headers']): Pick<UpstreamAnswer<unknown>, 'sunsetMs'> {
  const sunsetMs = typeof sunset === 'string' ? Date.parse(sunset) : NaN;
  return Number.isNaN(sunsetMs) ? {} : { sunsetMs };
}

/** A `Link` header with the relation "next" (RFC 8288): the contract does not show paging, so be ready for it. */
function hasNextPage(link: string | string[] | undefined): boolean {
  const params = [link ?? []].flat().flatMap((value) => value.split(/[;,]/));
  return params.some((param) => /^\s*rel\s*=\s*(?:"[^"]*\bnext\b|next\b)/i.test(param));
}

function theAnimal(decoded: Decoded<Pet>, id: Int64): Decoded<Pet> {
  if (!decoded.ok || decoded.value.id === id) return decoded;
  return { ok: false, problem: 'id: expected the id that was asked for', foreign: false };
}

/**
 * The answer to another call shows another animal, and then nothing is known of this one. A service may tidy up a name or
 * choose a status of its own, which the contract leaves open; a 201 in the right category is taken for the answer all the
 * same, and not a 200, as which the answer to a read would come.
 */
function theAddedAnimal(decoded: Decoded<Pet>, status: number, asked: NewPet): Decoded<Pet> {
  if (!decoded.ok) return decoded;
  const { name, categoryId } = decoded.value;
  if (categoryId !== asked.categoryId) return notAsAsked('categoryId');
  return status === 201 || name === asked.name ? decoded : notAsAsked('name');
}

function notAsAsked(field: keyof NewPet): Decoded<never> {
  return { ok: false, problem: `${field}: expected that of the animal that was to be added`, foreign: false };
}
