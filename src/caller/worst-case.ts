import type { Int64 } from '../int64.ts';
import { LISTINGS } from './call.ts';
import type { ListingName } from './call.ts';
import { demandKey } from './demand.ts';
import type { Demand } from './demand.ts';
import type { Knowledge } from './knowledge.ts';
import { allMaySave } from './plan-of-calls.ts';
import type { StoreFacts } from './plan-of-calls.ts';

/** What is known when an operation comes. */
export interface KnownFacts extends Omit<StoreFacts, 'resting'>, Pick<Knowledge, 'lastShown'> {
  /** Whether memory answers it as young as it is wanted. */
  knows(demand: Demand): boolean;
  /** Whether the upstream had no `GET /pets/{petId}` when it was asked last, and may have it again at any moment. */
  readonly singleReadsRest: boolean;
  /** The listings that are as young as that: asking for them again would tell nothing more. */
  readonly listed: ReadonlySet<ListingName>;
}

/**
 * The most calls that reading all of these can take, retries aside, while the service goes on as it does. It follows from
 * `planCalls`, with whatever others may ask for meanwhile: a call for each demand that memory does not answer, and one for each
 * listing that is tried to save them; where there are no reads of single animals, the listings that are left, each once; and
 * both where they may come back.
 */
export function worstCaseCalls(demands: readonly Demand[], facts: KnownFacts): number {
  const open = new Map<string, Demand>();
  for (const demand of demands) if (!facts.knows(demand)) open.set(demandKey(demand), demand);
  const needs = [...open.values()];
  const animals = needs.filter((demand) => demand.kind === 'animal');
  const listings = LISTINGS.length - facts.listed.size;
  if (animals.length > 0 && !facts.singleReadsWork && !facts.singleReadsRest) return listings;
  const own = new Set(needs.map((demand) => demandKey(demand)));
  const shownIn = new Set(animals.map(({ id }) => facts.lastShown(id)));
  const maybeTried = LISTINGS.filter(
    (listing) => !facts.listed.has(listing) && !own.has(listing) && mayBeTried(listing),
  );
  return needs.length + maybeTried.length;

  function mayBeTried(listing: ListingName): boolean {
    if (animals.some(({ id }) => facts.singleReadsRest || isBelowZero(id))) return true;
    if (listing === 'all' && needs.length > 0 && allMaySave(needs.length + OF_OTHERS, facts)) return true;
    return shownIn.has(listing);
  }
}

/** What others ask for at the same time. */
const OF_OTHERS = 1;

/** A router of the service's that takes digits alone has no route to such an animal. */
function isBelowZero(id: Int64): boolean {
  return id.startsWith('-');
}
