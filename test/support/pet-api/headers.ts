import type { HeaderRecord } from './fault.ts';
import type { ToldHeaders } from './strict-plan.ts';

interface HeaderForm {
  /** Returns the header that tells it; undefined where it is not sent. */
  readonly write: (told: ToldHeaders) => string | undefined;
  /** What no plan and no clock can mean, nor any reader believe. A small reset would be one in seconds from now. */
  readonly impossible: readonly string[];
}

/** The headers by which the pet API tells of a plan: the double, its faults and the explorer write them all. */
export const HEADER_FORMS: Readonly<Record<string, HeaderForm>> = {
  'x-ratelimit-limit': { write: ({ limit }) => limit?.toString(), impossible: ['0', '000'] },
  'x-ratelimit-remaining': {
    write: ({ remaining }) => remaining?.toString(),
    impossible: ['999999999', '999999999999999', '1000000000'],
  },
  'x-ratelimit-reset': {
    write: ({ reset }) => reset?.toString(),
    impossible: ['999999999999999', '1000000000', '1234567890'],
  },
  'retry-after': {
    write: ({ retryAfterMs }) => (retryAfterMs === undefined ? undefined : String(retryAfterMs / 1000)),
    impossible: [],
  },
  date: {
    write: ({ dateMs }) => (dateMs === undefined ? undefined : new Date(dateMs).toUTCString()),
    impossible: ['Thu, 01 Jan 1970 00:00:00 GMT', 'Fri, 31 Dec 9999 23:59:59 GMT', 'Sat, 32 Foo 2026 12:00:00', '12'],
  },
};

/** No word of any plan. */
export const NOTHING_TOLD: ToldHeaders = {
  limit: undefined,
  remaining: undefined,
  reset: undefined,
  retryAfterMs: undefined,
  dateMs: undefined,
};

export function writeHeaders(told: ToldHeaders): HeaderRecord {
  return Object.fromEntries(Object.entries(HEADER_FORMS).map(([name, { write }]) => [name, write(told)]));
}
