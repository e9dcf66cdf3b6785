/** A plan's two windows (pet-api.md, "Rate limits by plan"). */
export interface SandboxPlan {
  readonly name: string;
  readonly perMinute: number;
  readonly perDay: number;
}

/** API keys and their plans. */
export type SandboxKeys = Readonly<Record<string, SandboxPlan>>;

/** One key for each plan. Enterprise is custom: these are one customer's figures. */
export const DEMO_KEYS: SandboxKeys = {
  'demo-free': { name: 'Free', perMinute: 60, perDay: 1_000 },
  'demo-pro': { name: 'Pro', perMinute: 300, perDay: 10_000 },
  'demo-business': { name: 'Business', perMinute: 1_000, perDay: 100_000 },
  'demo-enterprise': { name: 'Enterprise', perMinute: 5_000, perDay: 1_000_000 },
};
