import { gzipSync } from 'node:zlib';
import type { Fault } from '../../src/sandbox/fault.ts';

/** An answer that the service's contract does not know, and what of a client's petql must make of it. */
export interface WrongAnswer {
  readonly fault: Fault;
  /** What the read of a listing gets: an error with this code, or the animals all the same. */
  readonly listing: 'animals' | 'DOWNSTREAM_SERVICE_ERROR' | 'GATEWAY_TIMEOUT';
}

const DOWN = 'DOWNSTREAM_SERVICE_ERROR';
const STATUSES =
  '201 202 203 204 205 206 226 300 301 302 303 304 307 308 402 404 405 406 408 409 410 413 418 422 451 500 501 502 503 504 599'
    .split(' ')
    .map(Number);

/** What a sandbox is made to answer to `GET /pets`, by name. Large ones are made when they are asked for. */
export const WRONG_ANSWERS: Readonly<Record<string, () => WrongAnswer>> = {
  ...Object.fromEntries(STATUSES.map((status) => [`status ${status}`, () => withStatus(status)])),
  'HTML with 200': () => broken({ body: '<!doctype html><title>Welcome</title>', headers: html }),
  'an empty body': () => broken({ body: '' }),
  'a truncated JSON': () => broken({ body: '[{"id":1,"name":"Ada","categ' }),
  'no JSON': () => broken({ body: "[{'id': 1}]" }),
  'a text that is no UTF-8': () => broken({ body: Buffer.from([0x5b, 0x22, 0xff, 0xfe, 0x22, 0x5d]) }),
  'two documents': () => broken({ body: '[][]' }),
  'a JSON nested a hundred thousand deep': () => broken({ body: '['.repeat(100_000) + ']'.repeat(100_000) }),
  'an object for a list': () => broken({ body: JSON.stringify({ pets: [animal(1)] }) }),
  null: () => broken({ body: 'null' }),
  ...Object.fromEntries(
    wrongFields().map(([name, pet]) => [`an animal with ${name}`, () => broken({ body: JSON.stringify([pet]) })]),
  ),
  'an id past int64': () => broken({ body: '[{"id":9223372036854775808,"name":"Ada","categoryId":1}]' }),
  'an id with a fraction': () => broken({ body: '[{"id":1.5,"name":"Ada","categoryId":1}]' }),
  'the same id twice': () => broken({ body: JSON.stringify([animal(1), animal(2), animal(1)]) }),
  'more than 100 animals': () =>
    broken({ body: JSON.stringify(Array.from({ length: 101 }, (_, index) => animal(index + 1))) }),
  'a content encoding that nobody asked for': () =>
    broken({ body: gzipSync(JSON.stringify([animal(1)])), headers: { 'content-encoding': 'gzip' } }),
  'a gzip bomb': () =>
    broken({ body: gzipSync(Buffer.alloc(50_000_000, ' ')), headers: { 'content-encoding': 'gzip' } }),
  'a body of 100 MB': () => broken({ body: Buffer.alloc(100_000_000, ' ') }),
  'a header of 1 MB': () => broken({ headers: { 'x-large': 'x'.repeat(1_000_000) } }),
  'ten thousand headers': () =>
    broken({ headers: Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`x-${index}`, 'x'])) }),
  'fields that the contract does not know': () => ({
    fault: { body: JSON.stringify([{ ...animal(1), owner: { secret: 'of others' } }]) },
    listing: 'animals',
  }),
  'headers that take ten seconds': () => ({
    fault: { delayMs: 10_000 },
    listing: 'GATEWAY_TIMEOUT',
  }),
  'a connection that is reset': () => ({ fault: { reset: true }, listing: DOWN }),
  'a body that is cut': () => ({ fault: { cutAfterBytes: 20 }, listing: DOWN }),
};

const html = { 'content-type': 'text/html' };

/** Of another status than asked: for a listing of those with a status alone. */
export function strangersIn(status: 'available' | 'pending' | 'sold'): Fault {
  const other = status === 'sold' ? 'pending' : 'sold';
  return {
    body: JSON.stringify([
      { ...animal(1), status },
      { ...animal(2), status: other },
    ]),
  };
}

function broken(fault: Fault): WrongAnswer {
  return { fault, listing: DOWN };
}

function withStatus(status: number): WrongAnswer {
  // Where whoever follows it finds animals.
  const headers = status >= 300 && status < 400 ? { location: '/staging/v1/pets?limit=100' } : {};
  return broken({ status, headers });
}

function animal(id: number): Record<string, unknown> {
  return { id, name: `Animal ${id}`, categoryId: 1, status: 'available' };
}

/** Each field left out, and of each type that it must not be. */
function wrongFields(): (readonly [name: string, pet: unknown])[] {
  const wrong: Record<string, readonly unknown[]> = {
    id: ['1', null, true, [], {}, 1e300],
    name: [1, null, true, [], {}],
    categoryId: ['1', null, false, [], {}],
    status: ['adopted', 'AVAILABLE', '', 1, true, [], {}],
  };
  return [
    ...['id', 'name', 'categoryId'].map((field) => [`no ${field}`, { ...animal(1), [field]: undefined }] as const),
    ...Object.entries(wrong).flatMap(([field, values]) =>
      values.map((value) => [`the ${field} ${JSON.stringify(value)}`, { ...animal(1), [field]: value }] as const),
    ),
  ];
}
