import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import { PLANS } from '../../src/common/plan.ts';
import { tooMany } from '../support/pet-api/fault.ts';
import { createPetApi } from '../support/pet-api/pet-api.ts';

const CREATE = 'mutation { createPet(input: { name: "Momo", categoryId: "1" }) { pet { id } } }';
const READ = 'query ($ids: [ID!]!) { petsById(ids: $ids) { id } }';
const PAUSE_MS = 4_000;
/** Clients that leave in the pause, and how long each of them waits. */
const LEAVE_PER_SECOND = 1_000;
const LEAVE_AFTER_MS = 250;
const STAYING = 20;
/** Half a second on a machine that does nothing else. */
const MAX_ADDED_MS = 2_500;

/**
 * The key is paused, so everything waits for one probe. On real clocks: on virtual ones the jobs that Bottleneck has to work off
 * take no time.
 */
test.each(['create', 'read'] as const)(
  'a thousand clients a second that leave do not hold up the first call after a pause: %s',
  async (kind) => {
    const plan = { ...PLANS.business, windows: 'fixed', tells: 'minute' } as const;
    const petApi = createPetApi({ planOf: () => plan });
    const ids = petApi.storeOf('key').hiddenIds();
    await using resources = new AsyncDisposableStack();
    const gateway = createGateway({
      petApiUrl: 'http://pet-api.test/v1',
      dispatcher: petApi.connect(),
      plan: 'business',
    });
    resources.defer(() => gateway.close());
    const read = (number: number) => ({ document: READ, variables: { ids: [ids[number % ids.length]] } });
    const send = (number: number, signal?: AbortSignal) =>
      gateway.execute({
        ...(kind === 'read' ? read(number) : { document: CREATE }),
        apiKey: 'key',
        waitMs: 20_000,
        cacheControl: 'no-cache',
        ...(signal && { signal }),
      });
    await gateway.ready();
    // From here on petql knows that no list shows these pets, so that each needs a call.
    await gateway.execute({ ...read(0), apiKey: 'key' });
    petApi.log.length = 0;
    petApi.fault = tooMany(PAUSE_MS / 1_000 - 1);
    await send(1, AbortSignal.timeout(LEAVE_AFTER_MS)).catch(() => {});
    petApi.fault = undefined;

    const pausedAtMs = petApi.log[0]?.atMs ?? 0;
    // A busy machine is late for a timer too.
    const lateMs = setTimeout(pausedAtMs + PAUSE_MS - petApi.now()).then(() => petApi.now() - pausedAtMs - PAUSE_MS);
    const leaving: Promise<unknown>[] = [];
    while (petApi.now() < pausedAtMs + PAUSE_MS - LEAVE_AFTER_MS) {
      const due = ((petApi.now() - pausedAtMs) / 1_000) * LEAVE_PER_SECOND;
      while (leaving.length < due)
        leaving.push(send(leaving.length, AbortSignal.timeout(LEAVE_AFTER_MS)).catch(() => {}));
      await setTimeout(2);
    }
    // The last ones in the queue.
    const staying = Array.from({ length: STAYING }, (_, number) => send(number));
    await Promise.all(leaving);
    const answers = await Promise.all(staying);
    const waitedMs = (petApi.log[1]?.atMs ?? Infinity) - pausedAtMs;
    expect(answers.flatMap(({ errors }) => errors ?? [])).toEqual([]);
    // A list may save some reads.
    expect(petApi.log.length).toBeLessThanOrEqual(2 + STAYING);
    expect(waitedMs).toBeLessThan(PAUSE_MS + MAX_ADDED_MS + (await lateMs));
  },
  40_000,
);
