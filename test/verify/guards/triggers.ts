import { API_TRIGGERS } from './api-triggers.ts';
import { CLIENT_TRIGGERS } from './client-triggers.ts';
import type { GuardName } from './guarded-lines.ts';
import type { Incident } from './laboratory.ts';
import { SIX_MIXES } from './mixes.ts';
import type { MixName } from './mixes.ts';
import type { Trigger } from './trigger.ts';

export type TriggerName = keyof typeof API_TRIGGERS | keyof typeof CLIENT_TRIGGERS;

/** All that goes wrong in the laboratory, by its name. */
export const TRIGGERS: Readonly<Record<TriggerName, Trigger>> = { ...CLIENT_TRIGGERS, ...API_TRIGGERS };
export const TRIGGER_NAMES = Object.keys(TRIGGERS) as readonly TriggerName[];
export const QUIET: Incident = { minutes: 10, begin() {} };

export function mixesOf(trigger: TriggerName): readonly MixName[] {
  return TRIGGERS[trigger].mixes ?? SIX_MIXES;
}

/** The triggers that set off a guard. */
export function triggersOf(guard: GuardName): TriggerName[] {
  const sets = ({ against = [], worth = [] }: Trigger) => [...against, ...worth].includes(guard);
  return TRIGGER_NAMES.filter((name) => sets(TRIGGERS[name]));
}
