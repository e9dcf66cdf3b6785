import type { Call, ListingName } from './call.ts';
import { LISTINGS, callKey } from './call.ts';
import { ownCall } from './demand.ts';
import type { Demand } from './demand.ts';
import type { StoreSize } from './knowledge.ts';
import type { RestingListings } from './listing-rests.ts';

/** A demand that is not satisfied yet. */
export interface OpenDemand {
  readonly demand: Demand;
  /** Listings that cannot help it: it has seen them already, or they failed. */
  readonly seen: ReadonlySet<ListingName>;
  /** The listing that showed the animal when it was seen last, however long ago. Default: none. */
  readonly shownIn?: ListingName | undefined;
  /** The calls under way that it may use the answers of, as `callKey` names them. */
  readonly joins: ReadonlySet<string>;
  /** Whether a get of it was answered that there is no such route: it is not sent again. Default: no. */
  readonly metNoRoute?: boolean;
}

export interface StoreFacts {
  readonly size: StoreSize;
  /** Whether something was asked for, or is being asked for, in parts while the size was not known. */
  readonly askedInParts: boolean;
  /** Whether `GET /pets/{petId}` may be asked now. */
  readonly singleReadsWork: boolean;
  /** Listings that did not come lately: others than who wants them wait for them only where they are so many. */
  readonly resting: RestingListings;
}

export interface PlanOfCalls<Open extends OpenDemand> {
  /** What to send, in the order of the demands, with the demands that wait for each. */
  readonly calls: readonly { readonly call: Call; readonly waiting: readonly Open[] }[];
  /** Demands that no call can satisfy: every listing was seen, none proves that there is no such animal. */
  readonly unprovable: readonly Open[];
  /** Whether everything that has not seen the listing of all animals waits for it. */
  readonly allStandsIn: boolean;
  /** How many of the others each listing helps for sure: where they are enough, all that it may show wait for it. */
  readonly helps: Map<ListingName, number>;
}

/**
 * The fewest calls for what is open now. It is made anew whenever a call may be sent or an answer has come, so it only
 * says what comes next:
 *
 * 1. What a call under way may answer waits for it.
 * 2. A listing of all animals stands in for other calls where it is wanted anyway, where the store is known to be small
 *    (it costs the same and tells more), or where the size is not known and it may save at least one of two calls.
 *    It is tried once: a demand that has seen it goes its own way.
 * 3. Of what is left, each listing is a call. So is a listing that has shown two of the animals, or one that a get cannot
 *    find: for the price of a get it most likely shows them again, and as many others. That is tried once, too.
 * 4. An animal waits for the listing of this plan that has shown it, or else for those that may.
 * 5. The animals that are left are a get each, or, where the upstream has no such route, the next listing.
 *
 * So the calls for a set of demands are never more than one a demand, and one for each listing that is tried.
 */
export function planCalls<Open extends OpenDemand>(open: readonly Open[], facts: StoreFacts): PlanOfCalls<Open> {
  const needy = open.filter((one) => !waitsForOneUnderWay(one));
  const helpedByAll = needy.filter(({ seen }) => !seen.has('all'));
  const allStandsIn =
    helpedByAll.length >= enoughFor('all', facts, 1) && (needy.some(wantsAll) || allMaySave(helpedByAll.length, facts));
  const calls = new Map<Open, Call>();
  const unprovable: Open[] = [];
  const rest: Open[] = [];

  for (const one of needy) {
    if (allStandsIn && !one.seen.has('all')) calls.set(one, ALL);
    else if (one.demand.kind === 'listing') calls.set(one, ownCall(one.demand));
    else rest.push(one);
  }
  const helps = helpsOf(rest, calls.values(), facts);
  const listings = LISTINGS.filter((name) => (helps.get(name) ?? 0) >= enoughFor(name, facts));
  for (const one of rest) {
    const helpful = listings.filter((name) => !one.seen.has(name));
    const listing = helpful.find((name) => name === one.shownIn) ?? helpful[0];
    const call = listing
      ? listCall(listing)
      : facts.singleReadsWork && !one.metNoRoute
        ? ownCall(one.demand)
        : nextListing(one);
    if (call) calls.set(one, call);
    else unprovable.push(one);
  }
  return { calls: inOrder(needy, calls), unprovable, allStandsIn, helps };
}

const ALL = listCall('all');

/** Whoever wants a listing makes it one that others wait for, unless it rests. */
function helpsOf(
  animals: readonly OpenDemand[],
  wanted: Iterable<Call>,
  { singleReadsWork }: StoreFacts,
): Map<ListingName, number> {
  const helps = new Map<ListingName, number>();
  for (const call of wanted) if (call.kind === 'list') helps.set(call.listing, ENOUGH_FOR_A_LISTING);
  for (const one of animals) {
    const listing = listingToTry(one);
    if (!listing) continue;
    helps.set(listing, (helps.get(listing) ?? 0) + (singleReadsWork && !one.metNoRoute ? 1 : Infinity));
  }
  return helps;
}

/** The listing that has shown it, and may show it again. */
export function listingToTry({ seen, shownIn }: Pick<OpenDemand, 'seen' | 'shownIn'>): ListingName | undefined {
  return shownIn && !seen.has(shownIn) ? shownIn : undefined;
}

/** For so many animals that it has shown, a listing is worth a call. */
const ENOUGH_FOR_A_LISTING = 2;

/** How many a listing must help to be worth a call. */
export function enoughFor(
  listing: ListingName,
  { resting }: Pick<StoreFacts, 'resting'>,
  enough = ENOUGH_FOR_A_LISTING,
): number {
  return resting.get(listing) ?? enough;
}

/** Whether a call under way may answer it, so that it asks for none. */
export function waitsForOneUnderWay({ demand, seen, joins }: OpenDemand): boolean {
  if (joins.size === 0) return false;
  if (joins.has(callKey(ownCall(demand)))) return true;
  return helpfulTo(demand).some((listing) => !seen.has(listing) && joins.has(callKey({ kind: 'list', listing })));
}

/** Whether this call may answer it. */
export function mayAnswer(call: Call, { demand, seen }: Pick<OpenDemand, 'demand' | 'seen'>): boolean {
  if (call.kind === 'get') return demand.kind === 'animal' && demand.id === call.id;
  if (demand.kind === 'listing' && demand.listing === call.listing) return true;
  return !seen.has(call.listing) && helpfulTo(demand).includes(call.listing);
}

/** The listings that may answer it beside its own call. */
function helpfulTo(demand: Demand): readonly ListingName[] {
  return demand.kind === 'animal' ? LISTINGS : ALL_ALONE;
}

const ALL_ALONE: readonly ListingName[] = ['all'];

/** Whether a listing of all animals is worth a call for so many demands that it may answer. */
export function allMaySave(
  savable: number,
  { size, askedInParts }: Pick<StoreFacts, 'askedInParts' | 'size'>,
): boolean {
  if (size === 'small') return savable >= 1;
  return size === 'unknown' && savable >= (askedInParts ? 1 : 2);
}

/** Whether it is the listing of all animals itself that is wanted. */
export function wantsAll({ demand }: Pick<OpenDemand, 'demand'>): boolean {
  return demand.kind === 'listing' && demand.listing === 'all';
}

function nextListing({ seen }: OpenDemand): Call | undefined {
  const listing = LISTINGS.find((name) => !seen.has(name));
  return listing && listCall(listing);
}

function listCall(listing: ListingName): Call {
  return { kind: 'list', listing };
}

/** Equal calls once, in the order of the demands that they are for. */
function inOrder<Open extends OpenDemand>(
  open: readonly Open[],
  calls: ReadonlyMap<Open, Call>,
): PlanOfCalls<Open>['calls'] {
  const planned = new Map<string, { call: Call; waiting: Open[] }>();
  for (const one of open) {
    const call = calls.get(one);
    if (!call) continue;
    const key = callKey(call);
    const entry = planned.get(key);
    if (entry) entry.waiting.push(one);
    else planned.set(key, { call, waiting: [one] });
  }
  return [...planned.values()];
}
