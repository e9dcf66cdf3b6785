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

/** What a caller's plan is said to be before the upstream tells. */
export interface AssumedPlan extends Plan {
  /** Whether somebody said so, rather than petql assuming the smallest. */
  readonly known: boolean;
}

/**
 * `auto`, a plan's name, or `PER_MINUTE/PER_DAY`.
 *
 * @returns undefined for anything else.
 */
export function parsePlan(text: string): AssumedPlan | undefined {
  if (text === 'auto') return { ...PLANS.free, known: false };
  if (Object.hasOwn(PLANS, text)) return { ...PLANS[text as keyof typeof PLANS], known: true };
  const [, perMinute, perDay] = /^([1-9]\d{0,8})\/([1-9]\d{0,8})$/.exec(text) ?? [];
  return perMinute && perDay ? { perMinute: Number(perMinute), perDay: Number(perDay), known: true } : undefined;
}

/** A plan as people call it: "Free", or its figures where it has no name. */
export function planName({ perMinute, perDay }: Plan): string {
  for (const { name, plan } of NAMED) if (plan.perMinute === perMinute && plan.perDay === perDay) return name;
  return `${perMinute}/${perDay}`;
}

const NAMED = Object.entries(PLANS).map(([name, plan]) => ({ name: name[0]?.toUpperCase() + name.slice(1), plan }));

/**
 * What a plan that holds this many calls a minute holds a day. A custom plan is taken to have at least what the largest
 * plan below it has; its own figure comes from the headers once they tell of the day.
 */
export function perDayFor(perMinute: number): number {
  return largest((plan) => plan.perMinute <= perMinute).perDay;
}

/** The same from the other side. */
export function perMinuteFor(perDay: number): number {
  return largest((plan) => plan.perDay <= perDay).perMinute;
}

/** Whether a published plan holds so many calls a day. */
export function isDayOfAPlan(calls: number): boolean {
  return Object.values<Plan>(PLANS).some(({ perDay }) => perDay === calls);
}

/** The same a minute. */
export function isMinuteOfAPlan(calls: number): boolean {
  return Object.values<Plan>(PLANS).some(({ perMinute }) => perMinute === calls);
}

function largest(fits: (plan: Plan) => boolean): Plan {
  return Object.values<Plan>(PLANS).findLast(fits) ?? PLANS.free;
}
