import { STORY_NAMES } from './stories.ts';
import type { StoryName } from './stories.ts';
import type { SandboxPlan } from './usage-limits.ts';

/** The plan of an API key, and its story. */
export interface SandboxKey extends SandboxPlan {
  /** How the key misbehaves. Default: it does not. */
  readonly story?: StoryName | undefined;
}

/** API keys, with what the sandbox allows them. */
export type SandboxKeys = Readonly<Record<string, SandboxKey>>;

export const FREE: SandboxKey = { perMinute: 60, perDay: 1_000 };

/** One key for each plan of pet-api.md. Enterprise is custom: these are one customer's figures. */
export const PLAN_KEYS = {
  'demo-free': FREE,
  'demo-pro': { perMinute: 300, perDay: 10_000 },
  'demo-business': { perMinute: 1_000, perDay: 100_000 },
  'demo-enterprise': { perMinute: 5_000, perDay: 1_000_000, isDayShown: true },
} satisfies SandboxKeys;

/** One key on the Free plan for each story. */
export const STORY_KEYS: SandboxKeys = Object.fromEntries(
  STORY_NAMES.map((story) => [`demo-${story}`, { ...FREE, story }]),
);

export const DEMO_KEYS: SandboxKeys = { ...PLAN_KEYS, ...STORY_KEYS };
