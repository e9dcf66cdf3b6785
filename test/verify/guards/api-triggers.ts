import { HANGS, REJECTS_KEY, fails, inTurn, mixed, on, slow, times, tooMany } from '../../support/pet-api/fault.ts';
import type { Fault } from '../../support/pet-api/fault.ts';
import type { Span } from './laboratory.ts';
import { SIX_MIXES } from './mixes.ts';
import { FROM_SOON, MAINTENANCE, MINUTE_MS, SECOND_MS, create, get, ofHonestKeys, page } from './trigger.ts';
import type { Trigger } from './trigger.ts';

const FROM_MINUTE: Span = [MINUTE_MS, Infinity];
const BLIPS_MS = [MINUTE_MS, 31 * MINUTE_MS];
const BLIP_MS = 5 * SECOND_MS;
/** A cache before the API answers in its place. */
const CACHED: Fault = { headers: (told) => ({ ...told, age: '30' }) };

/** What an odd, broken or changing API does, and a redeploy of petql. */
export const API_TRIGGERS = {
  'maintenance-and-a-list': {
    by: 'an odd API',
    about: 'creates are in maintenance, and one list fails',
    against: ['closed-api'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, [on('create', MAINTENANCE), on('sold', fails(500))]);
    },
  },
  'maintenance-and-gets': {
    by: 'an odd API',
    about: 'creates are in maintenance, and gets fail',
    against: ['closed-api'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, [on('create', MAINTENANCE), on('get', fails(500))]);
    },
  },
  'one-list-fails': {
    by: 'an odd API',
    about: 'one list fails',
    worth: ['closed-lists'],
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, on('sold', fails(500))),
  },
  'lists-fail': {
    by: 'an odd API',
    about: 'all lists fail',
    against: ['closed-api'],
    worth: ['closed-lists'],
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, on('list', fails(500))),
  },
  'lists-take-6-s': {
    by: 'an odd API',
    about: 'lists take longer than petql waits',
    against: ['closed-api'],
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, on('list', slow(6_000))),
  },
  'poisoned-pet': {
    by: 'an odd API',
    about: 'a pet that cannot be shown makes all lists fail, and its own get, which a visitor asks for each 5 s',
    against: ['closed-api'],
    minutes: 4,
    begin(scene) {
      scene.fail(FROM_SOON, on(['list', '1'], fails(500)));
      scene.every(5 * SECOND_MS, FROM_SOON, () => get(scene, 1));
    },
  },
  'gets-are-401': {
    by: 'an odd API',
    about: 'the key may read no single pet: each get is answered 401',
    against: ['rejected-keys'],
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, on('get', REJECTS_KEY)),
  },
  'gets-are-gone': {
    by: 'an odd API',
    about: 'single pets have no route any more',
    worth: ['closed-gets'],
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, on('get', page(404))),
  },
  'cached-lists': {
    by: 'an odd API',
    about: 'all but a cache before the API is down, and the cache has the lists',
    against: ['closed-api'],
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, [on('list', CACHED), fails()]),
  },

  'outage-of-3-min': {
    by: 'an odd API',
    about: 'all calls fail for 3 min',
    worth: ['closed-api'],
    minutes: 5,
    begin: (scene) => scene.fail([MINUTE_MS, 4 * MINUTE_MS], fails()),
  },
  'outage-with-a-create': {
    by: 'an odd API',
    about: 'all calls fail for 3 min, the first of which is a create of which nobody knows the outcome',
    against: ['generation'],
    minutes: 6,
    begin(scene) {
      scene.fail([2 * MINUTE_MS, 5 * MINUTE_MS], fails());
      scene.at(2 * MINUTE_MS, () => create(scene, 'Momo'));
    },
  },
  'outage-of-45-min': {
    by: 'an odd API',
    about: 'all calls fail for 45 min',
    worth: ['closed-api'],
    minutes: 50,
    begin: (scene) => scene.fail([MINUTE_MS, 46 * MINUTE_MS], fails()),
  },
  'two-blips': {
    by: 'an odd API',
    about: 'all calls fail for 5 s, and once more after half an hour in which nobody came',
    against: ['closed-api'],
    minutes: 35,
    silence: [MINUTE_MS + BLIP_MS, 31 * MINUTE_MS],
    begin(scene) {
      for (const fromMs of BLIPS_MS) scene.fail([fromMs, fromMs + BLIP_MS], fails());
    },
  },
  'two-blips-of-a-list': {
    by: 'an odd API',
    about: 'one list fails for 20 s, and once more after half an hour in which nobody came',
    against: ['closed-api'],
    minutes: 35,
    silence: [MINUTE_MS + 20 * SECOND_MS, 31 * MINUTE_MS],
    begin(scene) {
      for (const fromMs of BLIPS_MS) scene.fail([fromMs, fromMs + 20 * SECOND_MS], on('all', fails()));
    },
  },
  'half-fails': {
    by: 'an odd API',
    about: 'every other call fails',
    worth: ['retry-budget'],
    against: ['closed-api'],
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, mixed([[0.5, fails()]])),
  },
  'one-425': {
    by: 'an odd API',
    about: 'one list is answered 425',
    against: ['closed-lists'],
    mixes: [...SIX_MIXES, 'batches'],
    minutes: 3,
    begin: (scene) => scene.fail(FROM_SOON, times(1, on('list', fails(425)))),
  },
  firewall: {
    by: 'an odd API',
    about: 'for 30 s a firewall answers all calls 403',
    against: ['closed-api'],
    minutes: 3,
    begin: (scene) => scene.fail([MINUTE_MS, 1.5 * MINUTE_MS], page(403)),
  },

  'read-only-key': {
    by: 'an odd API',
    about: 'the API answers each create 401',
    against: ['rejected-keys'],
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, on('create', REJECTS_KEY)),
  },
  'one-node-rejects': {
    by: 'an odd API',
    about: 'one node of three answers 401',
    against: ['rejected-keys'],
    // Half of the creates that the other two nodes would take.
    goal: { fresh: 0.9, creates: 1 / 3 },
    minutes: 4,
    begin: (scene) => scene.fail(FROM_SOON, ofHonestKeys(inTurn(REJECTS_KEY, undefined, undefined))),
  },
  'one-401': {
    by: 'an odd API',
    about: 'one call is answered 401',
    against: ['rejected-keys'],
    minutes: 3,
    begin: (scene) => scene.fail(FROM_SOON, times(1, REJECTS_KEY)),
  },
  'revoked-key': {
    by: 'an odd API',
    about: 'the key is revoked',
    worth: ['rejected-keys'],
    minutes: 5,
    begin: (scene) => scene.fail(FROM_MINUTE, ofHonestKeys(REJECTS_KEY)),
  },
  'revoked-key-in-html': {
    by: 'an odd API',
    about: 'the key is revoked, which a proxy says in HTML',
    worth: ['rejected-keys'],
    minutes: 5,
    begin: (scene) => scene.fail(FROM_MINUTE, ofHonestKeys(page(401))),
  },

  'first-429': {
    by: 'an odd API',
    about: 'the first call of all is answered 429',
    against: ['pause'],
    minutes: 3,
    begin: (scene) => scene.fail([0, Infinity], times(1, tooMany(5))),
  },
  'a-minute-of-429': {
    by: 'an odd API',
    about: 'for a minute each call is answered 429 with a Retry-After of 15 s',
    worth: ['pause'],
    minutes: 3,
    begin: (scene) => scene.fail([MINUTE_MS, 2 * MINUTE_MS], tooMany(15)),
  },
  'storm-of-429': {
    by: 'an odd API',
    about: 'for 3 min calls are answered 429, 503 or not at all',
    worth: ['pause', 'failed-probe'],
    minutes: 5,
    begin: (scene) => scene.fail([MINUTE_MS, 4 * MINUTE_MS], inTurn(tooMany(1), fails(), HANGS)),
  },
  ban: {
    by: 'an odd API',
    about: 'a 429, and then a ban of 3 min',
    worth: ['ban'],
    minutes: 5,
    begin: (scene) => scene.fail([MINUTE_MS, 4 * MINUTE_MS], [times(1, tooMany(1)), page(403)]),
  },

  'redeploy-in-an-outage': {
    by: 'a redeploy',
    about: 'all calls fail for 3 min, and petql is replaced in between',
    worth: ['closed-api'],
    minutes: 5,
    redeployAtMs: 2 * MINUTE_MS,
    begin: (scene) => scene.fail([MINUTE_MS, 4 * MINUTE_MS], fails()),
  },
  'redeploy-in-maintenance': {
    by: 'a redeploy',
    about: 'creates are in maintenance, and petql is replaced',
    against: ['closed-api'],
    minutes: 5,
    redeployAtMs: 2 * MINUTE_MS,
    begin: (scene) => scene.fail([MINUTE_MS, 4 * MINUTE_MS], on('create', MAINTENANCE)),
  },
} as const satisfies Readonly<Record<string, Trigger>>;
