import type { BudgetView, BudgetWindow } from '../caller/budget.ts';
import { builder } from './builder.ts';
import { dateTime } from './date-time.ts';

const windowName = builder.enumType('Window', {
  description: 'A span of time in which a plan allows so many calls.',
  values: {
    MINUTE: { description: 'A minute.' },
    DAY: { description: 'A day.' },
  } as const,
});

const rateLimitWindow = builder.objectRef<BudgetWindow>('RateLimitWindow').implement({
  description: 'One window of the plan.',
  fields: (t) => ({
    window: t.expose('window', { type: windowName, nullable: false, description: 'Which window.' }),
    limit: t.exposeInt('limit', { nullable: false, description: 'Calls that the plan allows in it.' }),
    used: t.exposeInt('used', { nullable: false, description: 'Calls that are spent or under way.' }),
    remaining: t.exposeInt('remaining', {
      nullable: false,
      description:
        'Calls that are left. Where the service does not tell of the day, one in a hundred is kept back for those that a crash ' +
        'may leave uncounted.',
    }),
    resetAt: t.expose('resetAt', {
      type: dateTime,
      nullable: true,
      description: 'When calls become free again; null while none was made, or when that is not known.',
    }),
  }),
});

export const rateLimit = builder.objectRef<BudgetView>('RateLimit').implement({
  description: 'What is left of the plan of the API key: what the service told last, less what petql has called since.',
  fields: (t) => ({
    plan: t.exposeString('plan', {
      nullable: false,
      description:
        'Free, Pro, Business, or the calls a minute and a day of a plan without a name, such as "500/20000".',
    }),
    windows: t.field({
      type: [rateLimitWindow],
      nullable: false,
      description: 'The windows of the plan.',
      resolve: ({ windows }) => windows,
    }),
    queued: t.exposeInt('queued', {
      nullable: false,
      description:
        'Calls of this key that wait for their turn in the process that answers; those of other replicas are not counted.',
    }),
    closedUntil: t.expose('closedUntil', {
      type: dateTime,
      nullable: true,
      description:
        'Until when petql makes no call with this key, after a 429 or what looks like a ban; null when it makes calls.',
    }),
  }),
});
