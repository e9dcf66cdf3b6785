/**
 * What the sandbox assumes where pet-api.md says "not shown", or is silent. This is the one place for it: a service
 * that decides otherwise is no less right, and nothing above the upstream client relies on these choices.
 *
 * - Order of a listing: by id, lowest first; a listing that is cut shows the lowest ids. No paging, so no Link header.
 * - `status` omitted on creation: the animal has none, in that answer and in every later one.
 * - `id` in a creation body, and fields that the contract does not know: ignored.
 * - `limit` out of bounds or not a number, an unknown `status`, a `petId` that is no int64: 400.
 * - Names: 1 to 255 characters (code points), not all blank, no control characters, no lone surrogates. Category ids: any
 *   int64; one that no double holds exactly is written in digits alone.
 * - A store that is full refuses a creation with 409.
 * - Values of `code`: `bad_request`, `unauthorized`, `forbidden`, `not_found`, `method_not_allowed`, `gone`,
 *   `store_full`, `payload_too_large`, `rate_limited`, `key_banned`, `internal_error`.
 * - Windows are fixed: a minute starts with each minute of the Unix clock, a day with each day in UTC.
 * - The rate-limit headers tell of the window with fewer requests left, of the minute when both have the same.
 * - A refused request counts against no window. Every other one with a valid key does, whatever its status.
 * - Without a valid key there is no plan: limit and remaining are 0, and the reset is now.
 * - The body of a 429 is the Error body.
 * - `GET /pets/{petId}` was deprecated on 5 December 2025, goes with the first second of 5 December 2030 in UTC, and
 *   answers 410 from then on.
 * - The staging address has animals of its own and the same keys and plans, counted apart.
 */
export const ASSUMED = {
  nameCodePoints: 255,
  /** What petql itself takes from a caller. */
  bodyBytes: 262_144,
  /** Each of them can hold a body, or an answer that nobody takes; a gateway has 64. One more is closed at once. */
  connections: 500,
  /** In one store, those with ids of their own apart. With the longest names, both stores then take 180 MB. */
  animals: 50_000,
  deprecatedAtMs: Date.UTC(2025, 11, 5),
  sunsetAtMs: Date.UTC(2030, 11, 5),
  /** A key is banned at this many refusals inside one window: nine calls too many may still be called in flight. */
  refusalsBeforeBan: 10,
  banMs: 300_000,
} as const;
