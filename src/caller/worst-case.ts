import { LISTINGS } from './call.ts';
import type { ListingName } from './call.ts';
import { demandKey } from './demand.ts';
import type { Demand } from './demand.ts';
import { allMaySave, wantsAll } from './plan-of-calls.ts';
import type { StoreFacts } from './plan-of-calls.ts';

/** What is known when an operation comes. */
export interface KnownFacts extends StoreFacts {
  /** Whether memory answers it as young as it is wanted. */
  knows(demand: Demand): boolean;
  /** Whether the upstream had no `GET /pets/{petId}` when it was asked last, and may have it again at any moment. */
  readonly singleReadsRest: boolean;
  /** The listings that are as young as that: asking for them again would tell nothing more. */
  readonly listed: ReadonlySet<ListingName>;
}

/**
 * The most calls that reading all of these can take, retries aside, while the service goes on as it does. It follows from
 * `planCalls`: a call for each demand that memory does not answer, and one listing of all animals that tries to save them;
 * where there are no reads of single animals, the listings that are left, each once; and both where they may come back.
 */
export function worstCaseCalls(demands: readonly Demand[], facts: KnownFacts): number {
  const open = new Map<string, Demand>();
  for (const demand of demands) if (!facts.knows(demand)) open.set(demandKey(demand), demand);
  const needs = [...open.values()];
  const animals = needs.filter(({ kind }) => kind === 'animal').length;
  const listings = LISTINGS.length - facts.listed.size;
  if (animals > 0 && facts.singleReadsRest) return animals + listings;
  if (animals > 0 && !facts.singleReadsWork) return listings;
  const triesAll =
    !facts.listed.has('all') && !needs.some((demand) => wantsAll({ demand })) && allMaySave(needs.length, facts);
  return needs.length + (triesAll ? 1 : 0);
}
