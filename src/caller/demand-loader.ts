import DataLoader from 'dataloader';
import { demandKey } from './demand.ts';
import type { Demand } from './demand.ts';

export interface DemandLoader<Answer> {
  load(demand: Demand): Promise<Answer>;
}

/** The one place that knows DataLoader: gathers the demands of one request, equal ones once, and hands them on together. */
export function createDemandLoader<Answer>(answer: (demand: Demand) => Promise<Answer>): DemandLoader<Answer> {
  return new DataLoader<Demand, Answer, string>(
    (demands) => Promise.all(demands.map((demand) => answer(demand).catch((error: Error) => error))),
    { cacheKeyFn: demandKey },
  );
}
