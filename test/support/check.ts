import { createAnswerCheck } from './check-answers.ts';
import { checkPlan } from './check-plan.ts';
import { createWriteCheck } from './check-writes.ts';
import type { PlanRules } from './check-plan.ts';
import type { Operation } from './operation.ts';
import type { LoggedCall } from './pet-api/pet-api.ts';
import type { PetStore } from './pet-api/pet-store.ts';

export { usedShare } from './check-plan.ts';

/** The calls in the order in which they arrived, and the operations that caused them. */
export interface History {
  readonly log: readonly LoggedCall[];
  readonly operations: readonly Operation[];
  readonly storeOf: (key: string) => PetStore;
}

export interface HistoryRules extends PlanRules {
  /** Whether errors need a cause: a noted fault. Default false. */
  readonly quiet?: boolean;
}

/** The promises that a history breaks, one sentence each; none where all is well. */
export function brokenPromises({ log, operations, storeOf }: History, rules: HistoryRules = {}): string[] {
  const answers = createAnswerCheck({ faults: rules.faults });
  const writes = createWriteCheck({ storeOf });
  for (const operation of operations) for (const check of [answers, writes]) check.see?.(operation);
  writes.finish?.();
  const rows = [...checkPlan(log, rules), ...writes.rows, ...answers.rows];
  return rows
    .filter(({ promise }) => rules.quiet || promise !== 'errors have a cause')
    .flatMap(({ problems }) => problems);
}
