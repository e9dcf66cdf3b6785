import { hash, randomUUID } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import type { GatewayOptions } from '../../src/index.ts';
import type { NewPet } from '../../src/pets/pet.ts';
import { INDEX, SHARED_LIST } from '../../src/reads/cache/shared-documents.ts';
import { BEATS } from '../../src/store/replicas.ts';
import { ACCOUNT } from '../../src/quota/account/format.ts';
import { CREATE_OUTCOME } from '../../src/writes/create-outcome.ts';
import { RECORD } from '../../src/writes/records.ts';
import type { RedisConnection } from '../../src/store/redis.ts';
import { createRedis } from '../support/redis-double.ts';
import type { Redis } from '../support/redis-double.ts';
import { startEmbedded } from '../support/start-gateway.ts';
import { codesOf } from '../support/transports.ts';
import { until } from '../support/until.ts';

const CREATE =
  'mutation { createPet(input: { name: "Ada", categoryId: 1, idempotencyKey: "one" }) { pet { id name } } }';

interface StoredRecord {
  readonly id: string;
  readonly outcome: string;
}

/** By the first word of a name. */
const FORMATS: Readonly<Record<string, z.ZodType>> = {
  lists: INDEX,
  list: SHARED_LIST,
  replicas: BEATS,
};

const LESSON = { to: 'number', sinceMs: 'number', lastsMs: 'integer', 'isOver?': 'boolean' };
const SLOTS = { slots: ['integer'], counts: ['integer'], total: 'integer' };
const WINDOW = {
  ...SLOTS,
  'limit?': 'integer',
  'isSure?': 'boolean',
  'toldAtMs?': 'number',
  'foreign?': { calls: 'integer', untilMs: 'number' },
  'reset?': { fromMs: 'number', byMs: 'number', id: 'number', 'isGuess?': 'boolean' },
  'doubted?': { ...SLOTS, fromMs: 'number', id: 'number', 'isGuess?': 'boolean' },
  'slidesUntilMs?': 'number',
  'beyondSinceMs?': 'number',
  'lesson?': LESSON,
  'foreignLesson?': LESSON,
};

/**
 * Names that stay through upgrades, and what is written under them since 0.2.0. It may gain a field that old documents lack and old
 * versions ignore; anything else takes two releases, of which the first reads both.
 */
const KEPT_FORMATS: Readonly<Record<string, readonly (readonly [format: z.ZodType, written: unknown])[]>> = {
  // Version 0.3 had `lowered` and `pace` in place of lessons, both of which may be absent.
  'account:83d49071': [
    [
      ACCOUNT,
      {
        epoch: 'string',
        isProven: 'boolean',
        granted: 'integer',
        lastGrantAtMs: 'number',
        minute: WINDOW,
        day: WINDOW,
        'configured?': { perMinute: 'integer', perDay: 'integer', startedAtMs: 'number' },
        'trust?': {
          sinceMs: 'number',
          calls: 'integer',
          successes: 'integer',
          lost: 'integer',
          againAtMs: 'number',
        },
        'paceLesson?': LESSON,
        'fasterSinceMs?': 'number',
        pause: { untilMs: 'number', incidents: 'integer', incidentAtMs: 'number', isBan: 'boolean' },
      },
    ],
  ],
  'key-secret:2': [[z.string(), 'string']],
  'record:2': [
    [
      RECORD,
      {
        id: 'string',
        input: 'string',
        'outcome?': 'string',
        'isConflict?': 'boolean',
        openUntilMs: 'number',
        endsAtMs: 'number',
      },
    ],
    [
      CREATE_OUTCOME,
      [
        { pet: { id: 'any', name: 'string', categoryId: 'any', 'status?': 'available | pending | sold' } },
        { refusal: { code: 'string', message: 'string' } },
        { unknown: { 'status?': 'integer' } },
      ],
    ],
  ],
};

const startWith = (redis: Redis, options: Partial<GatewayOptions> = {}) =>
  startEmbedded({ redisUrl: 'redis://redis.test', redisConnection: redis.connect(), plan: 'pro', ...options });

/** Another petql, before or after this one, may read these documents. */
test('the name of each kind of document ends in the hash of its format, or stays with it', async () => {
  const redis = createRedis({ seed: 1 });
  await using gateway = await startWith(redis);
  for (const document of ['{ pets { id } }', CREATE, '{ pets { id } }']) {
    await gateway.execute({ document, apiKey: 'demo-pro', cacheControl: 'no-cache' });
  }
  await until(() => redis.names().some((name) => name.startsWith('petql:list:')));
  const names = new Set(redis.names().map((name) => name.split(':').slice(1, 3).join(':')));
  const hashed = Object.entries(FORMATS).map(([kind, format]) => `${kind}:${hashOf(formatOf(format))}`);
  expect([...names].toSorted()).toEqual([...hashed, ...Object.keys(KEPT_FORMATS)].toSorted());
  for (const [format, written] of Object.values(KEPT_FORMATS).flat()) expect(formatOf(format)).toEqual(written);
});

test.each([
  ['account', 'account'],
  ['lists', 'index of lists'],
  ['list', 'list'],
  ['replicas', 'heartbeats'],
])('documents under %s that cannot be read count as absent, and are logged once', async (name, kind) => {
  const redis = createRedis({ seed: 1 });
  const start = async () => {
    const gateway = await startWith(redis, { maxAgeMs: 60_000 });
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

test.each([
  ['a pet', '{"pet":{"id":"7","name":"Ada","categoryId":"-1","status":"sold"}}', { pet: { id: '7' }, userErrors: [] }],
  ['a pet without a status', '{"pet":{"id":"7","name":"","categoryId":"1"}}', { pet: { id: '7' }, userErrors: [] }],
  ['a refusal', '{"refusal":{"code":"C","message":"No."}}', { pet: null, userErrors: [{ code: 'C', message: 'No.' }] }],
])('%s that 0.2.0 stored as the outcome of a create is what its retry gets', async (_title, outcome, payload) => {
  const redis = createRedis({ seed: 1 });
  await using gateway = await startWith(redis);
  const document = CREATE.replace('{ id name } }', '{ id } userErrors { code message } }');
  await gateway.execute({ document, apiKey: 'demo-pro' });
  await changeRecords(redis, (record) => JSON.stringify({ ...record, outcome }));
  const { data } = await gateway.execute({ document, apiKey: 'demo-pro' });
  expect(data).toEqual({ createPet: payload });
  expect(gateway.petApi.log).toHaveLength(1);
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
  await using gateway = await startWith(redis);
  const create = () => gateway.execute({ document: CREATE, apiKey: 'demo-pro' });
  expect((await create()).errors).toBeUndefined();
  await changeRecords(redis, change);
  for (let retries = 0; retries < 2; retries += 1) expect(codesOf(await create())).toEqual(['OUTCOME_UNKNOWN']);
  expect(gateway.petApi.log).toHaveLength(1);
  const warnings = gateway.logLines.filter(({ level }) => Number(level) >= 40);
  expect(warnings).toMatchObject([{ kind, msg: 'a document in the store cannot be read' }]);
});

test('an outcome whose pet has a status that only a later version knows is that pet, without a status', async () => {
  const redis = createRedis({ seed: 1 });
  await using gateway = await startWith(redis);
  const create = () =>
    gateway.execute({ document: CREATE.replace('{ id name }', '{ id status }'), apiKey: 'demo-pro' });
  const { id } = ((await create()).data as Json)['createPet'].pet;
  await changeRecords(redis, ({ outcome, ...record }) => {
    const { pet } = JSON.parse(outcome);
    return JSON.stringify({ ...record, outcome: JSON.stringify({ pet: { ...pet, status: 'fostered' } }) });
  });
  expect(await create()).toMatchObject({ data: { createPet: { pet: { id, status: null } } } });
  expect(gateway.petApi.log).toHaveLength(1);
});

/** What a create has in each field, and the text of its input: a field that is missing here does not compile. */
const INPUTS: Readonly<Record<keyof NewPet, readonly [field: string, input: string]>> = {
  name: ['', '["Ada","1",null]'],
  categoryId: ['', '["Ada","1",null]'],
  status: ['status: SOLD', '["Ada","1","sold"]'],
};

test.each(Object.entries(INPUTS))(
  'the input of a create with a %s has the same hash in all versions',
  async (_name, [field, input]) => {
    const redis = createRedis({ seed: 1 });
    await using gateway = await startEmbedded({ redisUrl: 'redis://redis.test', redisConnection: redis.connect() });
    await gateway.execute({ document: CREATE.replace('name:', `${field} name:`), apiKey: 'demo-pro' });
    const [record] = [...redis.snapshot()].flatMap(([name, { text }]) =>
      name.startsWith('petql:record:') ? text : [],
    );
    const expected = hash('sha256', `http://pet-api.test/v1 demo-pro one ${input}`, 'base64url').slice(0, 32);
    expect(JSON.parse(record?.slice(36) ?? '')).toMatchObject({ input: expected });
  },
);

test.each([1, 2, 5])('a check of the key secret that fails in an odd way is made again: %i times', async (times) => {
  const connection = createRedis({ seed: 1 }).connect();
  let failures = times;
  const failing: RedisConnection = {
    ...connection,
    async compareAndSet(key, ...args) {
      if (!key.includes('key-secret') || failures === 0) return connection.compareAndSet(key, ...args);
      failures -= 1;
      throw new TypeError('odd');
    },
  };
  await using gateway = await startEmbedded({ redisUrl: 'redis://redis.test', redisConnection: failing });
  const ready = () =>
    gateway.ready().then(
      () => 'ready',
      (error: Error) => error.message,
    );
  // Others may have made it too.
  await expect.poll(ready).toBe('ready');
  expect(failures).toBe(0);
  expect(await gateway.execute({ document: '{ pets(limit: 1) { id } }', apiKey: 'demo-free' })).toMatchObject({
    data: { pets: [{ id: '1' }] },
  });
});

async function changeRecords(redis: Redis, change: (record: StoredRecord) => string): Promise<void> {
  for (const [name, { text }] of redis.snapshot()) {
    if (!name.startsWith('petql:record:')) continue;
    const changed = `${randomUUID()}${change(JSON.parse(text.slice(36)))}`;
    await redis.connect().compareAndSet(name, '*', 'set', changed, '60000');
  }
}

function hashOf(format: unknown): string {
  return hash('sha256', JSON.stringify(format)).slice(0, 8);
}

/** The format of a document in few words: `?` means that a field may be absent, `*` any name. */
function formatOf(format: z.ZodType): unknown {
  return inFewWords(z.toJSONSchema(format, { io: 'input', unrepresentable: 'any' }));
}

function inFewWords({ type = 'any', enum: values, anyOf, items, ...object }: any): unknown {
  if (anyOf) return anyOf.map(inFewWords);
  if (items) return [inFewWords(items)];
  if (type !== 'object') return values?.join(' | ') ?? type;
  const { properties, required = [], additionalProperties } = object;
  if (!properties) return { '*': inFewWords(additionalProperties) };
  const fields = Object.entries(properties);
  return Object.fromEntries(
    fields.map(([name, field]) => [required.includes(name) ? name : `${name}?`, inFewWords(field)]),
  );
}
