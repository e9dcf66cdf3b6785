export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

/** A window of a plan, as clients see it. Accounts call theirs `minute` and `day`, as stored documents do. */
export type PlanWindow = 'DAY' | 'MINUTE';

/** How many calls a plan allows in each window. */
export interface Plan {
  readonly perMinute: number;
  readonly perDay: number;
}

/** The plans that the upstream sells (pet-api.md, "Rate limits by plan"), smallest first. Enterprise is custom. */
export const PLANS = {
  free: { perMinute: 60, perDay: 1_000 },
  pro: { perMinute: 300, perDay: 10_000 },
  business: { perMinute: 1_000, perDay: 100_000 },
} as const satisfies Record<string, Plan>;

/** The plan of an API key before response headers show it. */
export interface AssumedPlan extends Plan {
  /** Whether it was configured; otherwise petql assumes the smallest. */
  readonly known: boolean;
}

/** Parses `auto`, a plan's name, in any case, or `PER_MINUTE/PER_DAY`; undefined for anything else. */
export function parsePlan(text: string): AssumedPlan | undefined {
  const asked = text.toLowerCase();
  if (asked === 'auto') return { ...PLANS.free, known: false };
  if (Object.hasOwn(PLANS, asked)) return { ...PLANS[asked as keyof typeof PLANS], known: true };
  const [, perMinute, perDay] = /^([1-9]\d{0,8})\/([1-9]\d{0,8})$/.exec(text) ?? [];
  return perMinute && perDay ? { perMinute: Number(perMinute), perDay: Number(perDay), known: true } : undefined;
}

/** Returns "Free", or the figures of a custom plan. */
export function planName({ perMinute, perDay }: Plan): string {
  const isIt = ([, plan]: [string, Plan]) => plan.perMinute === perMinute && plan.perDay === perDay;
  const name = Object.entries(PLANS).find(isIt)?.[0];
  return name ? name[0]?.toUpperCase() + name.slice(1) : `${perMinute}/${perDay}`;
}

/** Returns the calls of a window that petql may use by its plan share, in percent. */
export function ownLimitOf(limit: number, planShare: number): number {
  return planShare === 100 ? limit : Math.max(1, Math.floor((limit * planShare) / 100));
}

/** Returns whether a published plan has this limit. */
export function isPublished(limit: keyof Plan, calls: number): boolean {
  return Object.values<Plan>(PLANS).some((plan) => plan[limit] === calls);
}

/** Returns the plan with this limit. A custom plan has at least the other limit of the largest plan below it. */
export function planWith(limit: keyof Plan, calls: number): Plan {
  return Object.values<Plan>(PLANS).findLast((plan) => plan[limit] <= calls) ?? PLANS.free;
}
