import { builder } from './builder.ts';

export const dateTime = builder.scalarType('DateTime', {
  description: 'A moment in UTC, such as "2026-11-21T12:00:00.000Z" (RFC 3339).',
  serialize: (date) => date.toISOString(),
});
