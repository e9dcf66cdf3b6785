import { HANGS, fails, mixed, on, times, tooMany } from '../../support/pet-api/fault.ts';
import {
  FROM_SOON,
  INVALID,
  MAINTENANCE,
  MINUTE_MS,
  MISSING,
  SECOND_MS,
  SOON_MS,
  TWO_KEYS,
  create,
  from,
  get,
  letMadeUpKeys,
  letTwoKeys,
  list,
  named,
  ofMadeUpKeys,
  page,
} from './trigger.ts';
import type { Scene, Span } from './laboratory.ts';
import { SIX_MIXES } from './mixes.ts';
import type { Trigger } from './trigger.ts';

/** No store has so many pets. */
const ODD_ID = 3_000_000_000;
const ODD_IDS = 50;
const PETS = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';

/** What clients do to each other: a visitor of the same key, other keys, and keys that nobody has. */
export const CLIENT_TRIGGERS = {
  'bad-id-in-maintenance': {
    by: 'one visitor',
    about: 'creates are in maintenance, and a visitor asks once for a pet that cannot be',
    against: ['closed-api'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, on('create', MAINTENANCE));
      scene.fail(FROM_SOON, on('-1', INVALID));
      scene.at(SOON_MS, () => Promise.all([create(scene, 'Momo'), get(scene, -1)]));
    },
  },
  'creates-in-maintenance': {
    by: 'two keys',
    about: 'creates are in maintenance, and two keys create each 20 s',
    against: ['closed-api'],
    mixes: [...SIX_MIXES, 'four-keys', 'forty-keys'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, on('create', MAINTENANCE));
      letTwoKeys(scene, 20 * SECOND_MS, (key) => create(scene, 'Momo', { key }));
    },
  },
  'bad-creates': {
    by: 'two keys',
    about: 'two keys create each 5 s what the API rejects with 422',
    against: ['closed-api'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, named('bad', INVALID));
      letTwoKeys(scene, 5 * SECOND_MS, (key) => create(scene, 'bad', { key }));
    },
  },
  'huge-ids': {
    by: 'two keys',
    about: 'two keys ask each 5 s for ids on which the API fails with 500',
    against: ['closed-api', 'retry-budget'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, from(ODD_ID, fails(500)));
      let id = ODD_ID;
      letTwoKeys(scene, 5 * SECOND_MS, (key) => get(scene, (id += 1), { key }));
    },
  },
  'bad-create-and-bad-id': {
    by: 'one visitor',
    about: 'a visitor creates and asks for a pet each 5 s, both of which the API rejects with 422',
    against: ['closed-api'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, [named('bad', INVALID), on('-1', INVALID)]);
      scene.every(5 * SECOND_MS, FROM_SOON, () => Promise.all([create(scene, 'bad'), get(scene, -1)]));
    },
  },
  'missing-pets': {
    by: 'one visitor',
    about: 'a visitor asks each 3 s for a pet that is missing, for which the API has a 404 of its framework',
    against: ['closed-gets'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, from(ODD_ID, MISSING));
      scene.every(3 * SECOND_MS, FROM_SOON, (index) => get(scene, ODD_ID + index));
    },
  },
  'failing-creates': {
    by: 'one visitor',
    about: 'each half second a create of a visitor ends in 500',
    against: ['generation', 'closed-api'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, named('bad', fails(500)));
      scene.every(500, FROM_SOON, () => create(scene, 'bad'));
    },
  },
  'hanging-creates': {
    by: 'one visitor',
    about: 'each second a visitor creates a pet, and gets no response',
    against: ['closed-api', 'generation'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, named('bad', HANGS));
      scene.every(SECOND_MS, FROM_SOON, () => create(scene, 'bad'));
    },
  },
  'failing-creates-after-429': {
    by: 'one visitor',
    about: 'one 429, and each 250 ms a create of a visitor ends in 500',
    against: ['failed-probe', 'pause'],
    minutes: 4,
    begin: (scene) => createAfter429(scene, fails(500)),
  },
  'forbidden-creates-after-429': {
    by: 'one visitor',
    about: 'one 429, and each 250 ms a firewall forbids a create of a visitor',
    against: ['ban', 'pause'],
    minutes: 4,
    begin: (scene) => createAfter429(scene, page(403)),
  },
  'hanging-creates-after-429': {
    by: 'one visitor',
    about: 'one 429, and each 250 ms a visitor creates a pet, and gets no response',
    against: ['failed-probe'],
    minutes: 4,
    begin: (scene) => createAfter429(scene, HANGS),
  },
  'hanging-pets': {
    by: 'one visitor',
    about: 'each 5 s a visitor asks for 50 pets, and gets no response',
    against: ['in-flight'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, from(ODD_ID, HANGS));
      scene.every(5 * SECOND_MS, FROM_SOON, (index) => getMany(scene, ODD_ID + index * ODD_IDS));
    },
  },
  'failing-ids': {
    by: 'one visitor',
    about: 'one call in 20 fails, and each second a visitor asks for an id that always does',
    against: ['retry-budget'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, from(ODD_ID, fails(500)));
      scene.fail(FROM_SOON, mixed([[0.05, on(['list', 'get'], fails())]]));
      scene.every(SECOND_MS, FROM_SOON, (index) => get(scene, ODD_ID + index));
    },
  },
  'careless-client': {
    by: 'one visitor',
    about: 'for 3 min a visitor asks five times a second, whatever it is told',
    against: ['return-times'],
    mixes: ['free', 'nameless'],
    minutes: 6,
    begin: (scene) => scene.every(200, [SOON_MS, SOON_MS + 3 * MINUTE_MS], (index) => get(scene, ODD_ID + index)),
  },

  'strangers-after-a-failure': {
    by: 'made-up keys',
    about: 'two keys meet one 503 each, and 20 made-up keys a second come',
    against: ['closed-api'],
    minutes: 1,
    begin(scene) {
      scene.fail([SOON_MS, SOON_MS + 100], fails());
      for (const key of TWO_KEYS) {
        scene.at(SECOND_MS, () => list(scene, { key }));
        scene.at(SOON_MS, () => list(scene, { key }));
      }
      letMadeUpKeys(scene, 50, [SOON_MS, SOON_MS + 20 * SECOND_MS], (key) => list(scene, { key }));
    },
  },
  'strangers-after-missing-gets': {
    by: 'made-up keys',
    about: 'gets look gone for a second, and 20 made-up keys a second ask for pets',
    against: ['closed-gets'],
    minutes: 1,
    begin(scene) {
      scene.fail([SOON_MS, SOON_MS + SECOND_MS], on('get', page(404)));
      for (let id = 301; id < 305; id += 1) scene.at(SOON_MS, () => get(scene, id));
      letMadeUpKeys(scene, 50, [SOON_MS, SOON_MS + 20 * SECOND_MS], (key) => get(scene, ODD_ID, { key }));
    },
  },
  'bad-ids-of-strangers': {
    by: 'made-up keys',
    about: 'each half second a made-up key asks for an id that a router rejects before anybody looks at the key',
    against: ['closed-gets'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, ofMadeUpKeys(on('get', page(404))));
      letMadeUpKeys(scene, 500, FROM_SOON, (key) => get(scene, -1 - Number(key.slice(8)), { key }));
    },
  },
  'failing-strangers': {
    by: 'made-up keys',
    about: 'one call in 20 fails, and all of made-up keys, who ask each second',
    against: ['retry-budget'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, ofMadeUpKeys(fails(500)));
      scene.fail(FROM_SOON, mixed([[0.05, on(['list', 'get'], fails())]]));
      letMadeUpKeys(scene, SECOND_MS, FROM_SOON, (key) => list(scene, { key }));
    },
  },
} as const satisfies Readonly<Record<string, Trigger>>;

/** One call is answered 429. From then on creates of one visitor wait, so that one of them is the first to go. */
function createAfter429(scene: Scene, rule: Parameters<typeof named>[1]): void {
  scene.fail([MINUTE_MS, Infinity], [times(1, tooMany(5)), named('bad', rule)]);
  const span: Span = [MINUTE_MS, Infinity];
  scene.every(250, span, () => create(scene, 'bad'));
}

function getMany({ ask, honestKey: key }: Scene, firstId: number): Promise<unknown> {
  const ids = Array.from({ length: ODD_IDS }, (_, index) => String(firstId + index));
  return ask(PETS, { key, visitor: 'odd one', variables: { ids } });
}
