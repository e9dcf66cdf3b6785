import { fails } from '../../support/pet-api/fault.ts';
import type { Fault, FaultRule } from '../../support/pet-api/fault.ts';
import type { Goal } from './figures.ts';
import type { GuardName } from './guarded-lines.ts';
import { VALID_KEYS } from './laboratory.ts';
import type { Incident, Scene, Span } from './laboratory.ts';
import type { MixName } from './mixes.ts';

/** One thing that goes wrong, by one party, and the guards that it sets off. */
export interface Trigger extends Incident {
  readonly by: 'a redeploy' | 'an odd API' | 'made-up keys' | 'one visitor' | 'two keys';
  readonly about: string;
  /** The guards that it turns against the honest clients, who get no more without any of them. */
  readonly against?: readonly GuardName[];
  /** The guards that are there for it: without any of them, calls or fresh reads are lost. */
  readonly worth?: readonly GuardName[];
  /**
   * What the honest clients of the mix `page` get at least, where petql cannot tell what goes wrong from what its guards are for.
   * Default: 97 % of what they get without the guard, in each mix.
   */
  readonly goal?: Goal;
  /** Default: `SIX_MIXES`. */
  readonly mixes?: readonly MixName[];
}

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
/** By then the API has accepted each key. */
export const SOON_MS = 20 * SECOND_MS;
export const FROM_SOON: Span = [SOON_MS, Infinity];

/** Two keys beside the honest ones, which the API has accepted. */
export const TWO_KEYS = VALID_KEYS.slice(0, 2);

const LIST = '{ pets { id } }';
const PET = 'query ($id: ID!) { pet(id: $id) { id } }';
const CREATE = 'mutation ($name: String!) { createPet(input: { name: $name, categoryId: 3 }) { pet { id } } }';

/** One visitor of an honest key, where no other key is given. */
interface Sender {
  readonly key?: string;
}

export function list({ ask, honestKey }: Scene, { key = honestKey }: Sender = {}): Promise<unknown> {
  return ask(LIST, { key, visitor: 'odd one' });
}

export function get({ ask, honestKey }: Scene, id: number, { key = honestKey }: Sender = {}): Promise<unknown> {
  return ask(PET, { key, visitor: 'odd one', variables: { id: String(id) } });
}

export function create({ ask, honestKey }: Scene, name: string, { key = honestKey }: Sender = {}): Promise<unknown> {
  return ask(CREATE, { key, visitor: 'odd one', variables: { name } });
}

/** Lets two keys be accepted, and then do something so often. */
export function letTwoKeys(scene: Scene, everyMs: number, act: (key: string) => unknown): void {
  for (const key of TWO_KEYS) {
    scene.at(SECOND_MS, () => list(scene, { key }));
    scene.every(everyMs, FROM_SOON, () => act(key));
  }
}

/** Keys that nobody has, another one each time. */
export function letMadeUpKeys(scene: Scene, everyMs: number, span: Span, act: (key: string) => unknown): void {
  scene.every(everyMs, span, (index) => act(`made-up-${index}`));
}

// What the API answers with.

const HTML = { 'content-type': 'text/html' };
const PAGE = '<html>a page of a proxy</html>';

export function page(status: number): Fault {
  return fails(status, { body: PAGE, headers: HTML });
}

export const MAINTENANCE = fails(503, { headers: { 'retry-after': '900' } });
/** FastAPI's bodies are no Error of the contract. */
export const INVALID = fails(422, { body: '{"detail":[{"loc":["body","name"],"msg":"too odd"}]}' });
export const MISSING = fails(404, { body: '{"detail":"Not Found"}' });

// Which calls it answers so.

/** Creates of pets with this name. */
export function named(name: string, rule: FaultRule): FaultRule {
  return (call) => (call.name === name ? rule : undefined);
}

/** Gets of pets with such an id or a greater one. */
export function from(id: number, rule: FaultRule): FaultRule {
  return ({ kind, target }) => (kind === 'get' && Number(target) >= id ? rule : undefined);
}

export function ofMadeUpKeys(rule: FaultRule): FaultRule {
  return ({ key }) => (key.startsWith('made-up') ? rule : undefined);
}

export function ofHonestKeys(rule: FaultRule): FaultRule {
  return ({ key }) => (key.startsWith('honest') ? rule : undefined);
}
