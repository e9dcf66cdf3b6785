import { PLANS } from '../../../src/common/plan.ts';
import type { Plan } from '../../../src/common/plan.ts';
import { FORBIDS, on, slow } from '../../support/pet-api/fault.ts';
import type { FaultRule } from '../../support/pet-api/fault.ts';

/** What honest clients want, of whom, and how the pet API serves them while nothing goes wrong. */
export interface Mix {
  readonly about: string;
  /** The plan of each honest key. */
  readonly plan: Plan;
  /** How many keys the honest clients have. Clients of one key are its visitors. */
  readonly keys: number;
  /** Default 4. */
  readonly clients?: number;
  /** Whether petql is not told who is who. Default false. */
  readonly isNameless?: boolean;
  /** So many replicas, with a Redis, take turns. Default: one process without. */
  readonly replicas?: number;
  /** How often each client wants it, in milliseconds. Default: never. */
  readonly every: Partial<Readonly<Record<Want, number>>>;
  /** Pets of the store, each status in turn. A list shows 100, so that all of them show 300 of 350. */
  readonly pets: number;
  /** How the pet API always answers the honest keys. Default: as documented. */
  readonly usual?: FaultRule;
}

export type Want = 'create' | 'list' | 'pet' | 'threePets' | 'twentyPets';

const PAGE = { list: 5_000, pet: 5_000, threePets: 10_000, create: 20_000 } as const;
const ROOMY: Plan = { perMinute: 1_000, perDay: 100_000 };
const PETS = 350;
const CREATE_EVERY_MS = 2_000;

/** Reads and creates of a page, each client at a third of its pace. */
const FREE: Mix = {
  about: 'four visitors of one Free key, who want a third',
  plan: PLANS.free,
  keys: 1,
  every: { list: 15_000, pet: 15_000, threePets: 30_000, create: 60_000 },
  pets: PETS,
};
const ADOPTION: Mix = {
  about: 'an adoption page: four visitors of one key',
  plan: ROOMY,
  keys: 1,
  every: PAGE,
  pets: PETS,
};

const SIX = {
  page: ADOPTION,
  creates: { ...ADOPTION, about: 'creates alone, by four keys', keys: 4, every: { create: CREATE_EVERY_MS } },
  pets: {
    ...ADOPTION,
    about: 'single pets alone, by four keys, in a store whose lists show all 250',
    keys: 4,
    every: { pet: PAGE.pet, threePets: PAGE.threePets },
    pets: 250,
  },
  'create-only': {
    ...ADOPTION,
    about: 'creates alone, by a key that may do nothing else',
    every: { create: CREATE_EVERY_MS },
    usual: on(['list', 'get'], FORBIDS),
  },
  free: FREE,
  'slow-lists': {
    ...ADOPTION,
    about: 'the page, by four keys, where lists take 4 s',
    keys: 4,
    usual: on('list', slow(4_000)),
  },
} satisfies Readonly<Record<string, Mix>>;

const MORE = {
  'four-keys': { ...ADOPTION, about: 'the page, by four keys', keys: 4 },
  'forty-keys': {
    ...ADOPTION,
    about: 'the page, by forty keys at a sixth of the pace',
    keys: 40,
    clients: 40,
    every: { list: 30_000, pet: 30_000, threePets: 60_000, create: 120_000 },
  },
  replicas: { ...ADOPTION, about: 'the page, through three replicas', replicas: 3 },
  nameless: { ...FREE, about: 'a Free key whose four visitors have no names', isNameless: true },
  'slow-page': {
    ...ADOPTION,
    about: 'the page at a twelfth of the pace, for a day',
    every: { list: 60_000, pet: 60_000, threePets: 120_000, create: 240_000 },
  },
  batches: {
    ...FREE,
    about: 'a Free key, 20 pets of one list at a time',
    clients: 1,
    pets: 100,
    every: { twentyPets: 3_000 },
  },
} satisfies Readonly<Record<string, Mix>>;

export type MixName = keyof typeof MORE | keyof typeof SIX;
export const MIXES: Readonly<Record<MixName, Mix>> = { ...SIX, ...MORE };
export const MIX_NAMES = Object.keys(MIXES) as readonly MixName[];
/** Each trigger is tried in these. */
export const SIX_MIXES = Object.keys(SIX) as readonly (keyof typeof SIX)[];
