import { hash, randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { PET_STATUSES } from '../../src/pets/pet.ts';
import type { EachField } from '../../src/pets/pet.ts';
import { LIST_NAME } from '../../src/reads/cache/shared-documents.ts';
import type { RedisConnection } from '../../src/store/redis.ts';
import { on } from '../support/pet-api/fault.ts';
import { createRedis } from '../support/redis-double.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';
import { until } from '../support/until.ts';

const CREATE =
  'mutation { createPet(input: { name: "Ada", categoryId: 1, idempotencyKey: "one" }) { pet { id name } } }';

/** A pet with each field, as the pet API sends it: one that is missing here does not compile. */
const PET: EachField<unknown> = { id: 1, name: 'Ada', categoryId: 1, status: 'sold' };

interface StoredRecord {
  readonly id: string;
  readonly outcome: string;
}

/** Another petql, before or after this one, may read these documents: a format that changes needs a new version in its name. */
test('each kind of document has the format that the version in its name stands for', async () => {
  const documents = new Map<string, unknown>();
  const gateway = await startEmbedded({
    redisUrl: 'redis://redis.test',
    redisConnection: watched(documents),
    plan: 'pro',
  });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  gateway.petApi.fault = on('all', { body: JSON.stringify([PET]) });
  for (const document of ['{ pets { id } }', CREATE, '{ pets { id } }']) {
    await gateway.execute({ document, apiKey: 'demo-pro', cacheControl: 'no-cache' });
  }
  await until(() => [...documents.keys()].some((name) => name.startsWith('petql:lists:')));

  const window = {
    limit: 'number',
    slots: ['number'],
    counts: ['number'],
    total: 'number',
    reset: { fromMs: 'number', byMs: 'number', id: 'number' },
  };
  const { reset: _reset, limit: _limit, ...untold } = window;
  expect(Object.fromEntries(documents)).toEqual({
    'petql:account:3:HASH': {
      epoch: 'string',
      isProven: 'boolean',
      granted: 'number',
      lastGrantAtMs: 'number',
      minute: window,
      day: untold,
      configured: { perMinute: 'number', perDay: 'number', startedAtMs: 'number' },
      isPlanKnown: 'boolean',
      successes: { count: 'number', sinceMs: 'number' },
      pause: {
        isHalfOpen: 'boolean',
        untilMs: 'number',
        probeUntilMs: 'number',
        incidents: 'number',
        incidentAtMs: 'number',
        isBan: 'boolean',
      },
    },
    'petql:record:2:HASH:HASH': {
      id: 'string',
      input: 'string',
      outcome: 'string',
      openUntilMs: 'number',
      endsAtMs: 'number',
    },
    'petql:lists:3:HASH': { version: 'string', lists: { all: 'number' }, refreshes: {} },
    'petql:list:1:HASH:all': {
      version: 'string',
      asOfMs: 'number',
      complete: 'boolean',
      pets: [{ id: 'string', name: 'string', categoryId: 'string', status: 'string' }],
    },
    'petql:replicas:2:HASH': { UUID: 'number' },
    'petql:key-secret:2': 'string',
  });
});

test.each([
  ['account', 'account'],
  ['lists', 'index of lists'],
  ['list', 'list'],
  ['replicas', 'heartbeats'],
])('documents under %s that cannot be read count as absent, and are logged once', async (name, kind) => {
  const redis = createRedis({ seed: 1 });
  const start = async () => {
    const gateway = await startEmbedded({
      redisUrl: 'redis://redis.test',
      redisConnection: redis.connect(),
      plan: 'pro',
      maxAgeMs: 60_000,
    });
    onTestFinished(() => gateway[Symbol.asyncDispose]());
    return gateway;
  };
  const ask = async ({ execute }: Awaited<ReturnType<typeof start>>) => {
    for (const document of ['{ pets { id } }', CREATE, '{ pets { id } }']) {
      expect((await execute({ document, apiKey: 'demo-pro' })).errors).toBeUndefined();
    }
  };
  await ask(await start());
  const isOfKind = (each: string) => each.startsWith(`petql:${name}:`);
  await until(() => redis.names().some(isOfKind));
  for (const text of ['{', '{"version":1,"id":null}']) {
    for (const each of redis.names().filter(isOfKind)) {
      await redis.connect().compareAndSet(each, '*', 'set', `${randomUUID()}${text}`, '60000');
    }
    const gateway = await start();
    await ask(gateway);
    await until(() => gateway.logLines.length > 0);
    const warnings = gateway.logLines.filter(({ level }) => Number(level) >= 40);
    expect(warnings).toMatchObject([{ kind, msg: 'a document in the store cannot be read' }]);
  }
});

test.each([
  ['of this format costs no call', 'list', (list: Json) => list, 0],
  [
    'whose pets lack a field counts as absent',
    'list',
    ({ pets, ...list }: Json) => ({ ...list, pets: pets.map(nameless) }),
    1,
  ],
  [
    'is found by an index that names a list of another version, too',
    'lists',
    ({ lists, ...index }: Json) => ({ ...index, lists: { ...lists, 'category=3': lists.all } }),
    0,
  ],
])('a shared list %s', async (_title, kind, change, upstreamCalls) => {
  const redis = createRedis({ seed: 1 });
  const ask = async () => {
    const redisConnection = redis.connect();
    const options = { redisUrl: 'redis://redis.test', redisConnection, plan: 'pro', maxAgeMs: 60_000 } as const;
    await using gateway = await startEmbedded(options);
    const result = await gateway.execute({ document: '{ pets { id name } }', apiKey: 'demo-pro' });
    await until(() => redis.names().some((name) => name.startsWith('petql:list:')));
    return result;
  };
  const first = await ask();
  expect(first.errors).toBeUndefined();
  const documents = [...redis.snapshot()].map(([name, { text, endsAtMs }]) => {
    if (!name.startsWith(`petql:${kind}:`)) return [name, { text, endsAtMs }] as const;
    const changed = JSON.stringify(change(JSON.parse(text.slice(36))));
    return [name, { text: `${text.slice(0, 36)}${changed}`, endsAtMs }] as const;
  });
  redis.restore(new Map(documents));
  const second = await ask();
  expect(second.data).toEqual(first.data);
  expect(second.extensions?.petql).toMatchObject({ upstreamCalls });
});

type Json = Record<string, any>;

function nameless({ name: _name, ...pet }: Json): Json {
  return pet;
}

test('a shared list has the statuses that the version in its name stands for', () => {
  expect([LIST_NAME, PET_STATUSES]).toEqual(['list:1', ['available', 'pending', 'sold']]);
});

/** A later version may have sent the create that such a record guards. */
test.each<[string, string, (record: StoredRecord) => string]>([
  ['a record that cannot be read', 'idempotency record', () => '{'],
  ['a record of another shape', 'idempotency record', ({ id, ...rest }) => JSON.stringify({ ...rest, by: id })],
  ['an outcome that is no JSON', 'outcome of a create', (record) => JSON.stringify({ ...record, outcome: 'added' })],
  [
    'an outcome of another kind',
    'outcome of a create',
    (record) => JSON.stringify({ ...record, outcome: '{"pets":[]}' }),
  ],
  [
    'a pet without a name',
    'outcome of a create',
    (record) => JSON.stringify({ ...record, outcome: '{"pet":{"id":"1","categoryId":"1"}}' }),
  ],
])('%s is OUTCOME_UNKNOWN, creates no second pet, and is logged once', async (_title, kind, change) => {
  const redis = createRedis({ seed: 1 });
  await using gateway = await startEmbedded({
    redisUrl: 'redis://redis.test',
    redisConnection: redis.connect(),
    plan: 'pro',
  });
  const create = () => gateway.execute({ document: CREATE, apiKey: 'demo-pro' });
  expect((await create()).errors).toBeUndefined();
  for (const [name, { text }] of redis.snapshot()) {
    if (!name.startsWith('petql:record:')) continue;
    const changed = `${randomUUID()}${change(JSON.parse(text.slice(36)))}`;
    await redis.connect().compareAndSet(name, '*', 'set', changed, '60000');
  }
  for (let retries = 0; retries < 2; retries += 1) expect(codesOf(await create())).toEqual(['OUTCOME_UNKNOWN']);
  expect(gateway.petApi.log).toHaveLength(1);
  const warnings = gateway.logLines.filter(({ level }) => Number(level) >= 40);
  expect(warnings).toMatchObject([{ kind, msg: 'a document in the store cannot be read' }]);
});

test.each([
  ['without a status', '', '["Ada","1",null]'],
  ['with a status', 'status: SOLD', '["Ada","1","sold"]'],
])('the input of a create %s has the same hash in all versions', async (_title, field, input) => {
  const redis = createRedis({ seed: 1 });
  await using gateway = await startEmbedded({ redisUrl: 'redis://redis.test', redisConnection: redis.connect() });
  await gateway.execute({ document: CREATE.replace('name:', `${field} name:`), apiKey: 'demo-pro' });
  const [record] = [...redis.snapshot()].flatMap(([name, { text }]) => (name.startsWith('petql:record:') ? text : []));
  const expected = hash('sha256', `http://pet-api.test/v1 demo-pro one ${input}`, 'base64url').slice(0, 32);
  expect(JSON.parse(record?.slice(36) ?? '')).toMatchObject({ input: expected });
});

/** A connection that notes the shape of the last text that is written under each name. */
function watched(documents: Map<string, unknown>): RedisConnection {
  const connection = createRedis({ seed: 1 }).connect();
  return {
    close: () => connection.close(),
    compareAndSet(key, version, action, ...textAndTtl) {
      const name = key.replaceAll(/[\w-]{32}/g, 'HASH');
      const text = textAndTtl[0]?.slice(36) ?? '';
      if (action === 'set') documents.set(name, shapeOf(text.startsWith('{') ? JSON.parse(text) : text));
      return connection.compareAndSet(key, version, action, ...textAndTtl);
    },
  };
}

/** The types in a document; a list is shown by its first entry. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== 'object' || value === null) return typeof value;
  const entries = Object.entries(value).map(([name, each]) => [name.length === 36 ? 'UUID' : name, shapeOf(each)]);
  return Object.fromEntries(entries);
}
