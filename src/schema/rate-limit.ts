import type { QuotaWindow } from '../caller/quota.ts';
import type { RateLimit } from '../caller/request-context.ts';
import { builder } from './builder.ts';

const dateTime = builder.scalarType('DateTime', {
  description: 'A moment in UTC, such as "2026-11-21T12:00:00.000Z" (RFC 3339).',
  specifiedByURL: 'https://scalars.graphql.org/andimarek/date-time.html',
  serialize: (time) => time,
});

const windowName = builder.enumType('Window', {
  description: 'A period in which a rate plan allows a number of upstream calls.',
  values: {
    MINUTE: { description: 'A minute.' },
    DAY: { description: 'A day.' },
  } as const,
});

const rateLimitWindow = builder.objectRef<QuotaWindow>('RateLimitWindow').implement({
  description: 'The quota in one window.',
  fields: (t) => ({
    window: t.expose('window', { type: windowName, nullable: false, description: 'The period.' }),
    limit: t.exposeInt('limit', {
      nullable: false,
      description: 'Calls that petql may make in the window: the configured share of the plan, or all of it.',
    }),
    used: t.exposeInt('used', { nullable: false, description: 'Calls that are made or under way.' }),
    remaining: t.exposeInt('remaining', {
      nullable: false,
      description: 'Calls that are left: limit - used.',
    }),
    resetAt: t.expose('resetAt', {
      type: dateTime,
      nullable: true,
      description: 'When used calls are available again; null before the first call, or while petql does not know.',
    }),
  }),
});

export const rateLimit = builder.objectRef<RateLimit>('RateLimit').implement({
  description:
    "What is left of the quota of the API key by petql's own count, which the headers of the pet API correct. Where visitors share " +
    'the key, each sees its own share of it, and no plan.',
  fields: (t) => ({
    plan: t.exposeString('plan', {
      nullable: true,
      description:
        'Free, Pro, Business, or the calls per minute and day of a custom plan, such as "500/20000"; null until the plan is ' +
        'configured or known from a response.',
    }),
    windows: t.expose('windows', {
      type: [rateLimitWindow],
      nullable: false,
      description: 'The windows whose limit is configured or known from a response.',
    }),
    queued: t.exposeInt('queued', {
      nullable: false,
      description: 'Calls of this key that wait for the quota, in the replica that responds.',
    }),
    pausedUntil: t.expose('pausedUntil', {
      type: dateTime,
      nullable: true,
      description:
        'Until when petql makes no call with this key, after a 429 or a likely ban; null when the key is not paused.',
    }),
  }),
});
