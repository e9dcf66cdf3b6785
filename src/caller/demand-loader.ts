import DataLoader from 'dataloader';
import { demandKey } from './demand.ts';
import type { Demand } from './demand.ts';

export interface DemandLoader<Answer> {
  load(demand: Demand): Promise<Answer>;
}

/** The one place that knows DataLoader: gathers the demands of one request, equal ones once, and hands them on together. */
export function createDemandLoader<Answer>(
  answerAll: (demands: readonly Demand[]) => Promise<(Answer | Error)[]>,
): DemandLoader<Answer> {
  return new DataLoader<Demand, Answer, string>(answerAll, { cacheKeyFn: demandKey });
}
