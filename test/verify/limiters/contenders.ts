import Bottleneck from 'bottleneck';
import pThrottle from 'p-throttle';
import { request } from 'undici';
import type { Dispatcher } from 'undici';
import { createGateway } from '../../../src/index.ts';
import { silentLog } from '../../../src/common/log.ts';
import { PLANS } from '../../../src/common/plan.ts';
import type { PetApi } from '../../support/pet-api/pet-api.ts';
import { KEY } from './upstreams.ts';

/** What keeps a job within the limits of the pet API. */
export interface Contender {
  /** Adds a pet as soon as it may be added. Resolves once it is added, or given up. */
  readonly create: () => Promise<unknown>;
  readonly stop: () => Promise<void>;
}

/** A job is given up after so long. */
export const MAX_WAIT_MS = 600_000;
const { perMinute, perDay } = PLANS.free;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const BASE_URL = 'http://pet-api.test/v1';
const PET = { name: 'Momo', categoryId: 3 };
const CREATE = 'mutation { createPet(input: { name: "Momo", categoryId: 3 }) { pet { id } } }';

export const CONTENDERS: Readonly<Record<string, (petApi: PetApi) => Contender>> = {
  petql: startPetql,
  'Bottleneck, two reservoirs': startBottleneck,
  'p-throttle, two windows': startThrottles,
  'only Retry-After': startObedient,
};

function startPetql(petApi: PetApi): Contender {
  const gateway = createGateway({
    petApiUrl: BASE_URL,
    maxWaitMs: MAX_WAIT_MS,
    plan: 'free',
    log: silentLog,
    clock: { now: () => Date.now(), elapsed: () => Date.now() - 1_000_000 },
    dispatcher: petApi.connect(),
  });
  return {
    create: async () => gateway.execute({ document: CREATE, apiKey: KEY }),
    stop: () => gateway.close(),
  };
}

/** Bottleneck as its documentation has it for two windows: one limiter for each, and a job that met a 429 is tried again. */
function startBottleneck(petApi: PetApi): Contender {
  const send = senderOf(petApi);
  const reservoir = (calls: number, intervalMs: number) =>
    new Bottleneck({
      reservoir: calls,
      reservoirRefreshAmount: calls,
      reservoirRefreshInterval: intervalMs,
      maxConcurrent: 50,
    });
  const [minute, day] = [reservoir(perMinute, MINUTE_MS), reservoir(perDay, DAY_MS)];
  for (const limiter of [minute, day]) {
    limiter.on('failed', (error, { retryCount }) =>
      error instanceof TooMany && retryCount < MAX_RETRIES ? error.retryAfterMs : undefined,
    );
  }
  return {
    create: () => withDeadline((isOver) => minute.schedule(() => day.schedule(() => (isOver() ? nothing() : send())))),
    async stop() {
      await Promise.all([minute.disconnect(), day.disconnect()]);
    },
  };
}

/** Two windows, one within the other; a job that met a 429 is tried again after what it says. */
function startThrottles(petApi: PetApi): Contender {
  const send = senderOf(petApi);
  const byMinute = pThrottle({ limit: perMinute, interval: MINUTE_MS });
  const byDay = pThrottle({ limit: perDay, interval: DAY_MS });
  const throttled = byDay(byMinute(async (isOver: () => boolean) => (isOver() ? nothing() : send())));
  return {
    create: () => withDeadline((isOver) => retry(() => throttled(isOver), isOver)),
    stop: nothing,
  };
}

/** Sends at once, and waits for all after a 429, as long as it says. */
function startObedient(petApi: PetApi): Contender {
  const send = senderOf(petApi);
  let freeAtMs = 0;
  return {
    create: () =>
      withDeadline((isOver) =>
        retry(async () => {
          while (Date.now() < freeAtMs && !isOver()) await sleep(freeAtMs - Date.now());
          if (isOver()) return;
          try {
            await send();
          } catch (error) {
            if (error instanceof TooMany) freeAtMs = Math.max(freeAtMs, Date.now() + error.retryAfterMs);
            throw error;
          }
        }, isOver),
      ),
    stop: nothing,
  };
}

const MAX_RETRIES = 20;
/** Where a 429 does not say when to return. */
const DEFAULT_RETRY_MS = 5_000;

class TooMany extends Error {
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super('429');
    this.retryAfterMs = retryAfterMs;
  }
}

function senderOf(petApi: PetApi): () => Promise<void> {
  const dispatcher = petApi.connect() as unknown as Dispatcher;
  return async () => {
    const { body, headers, statusCode } = await request(`${BASE_URL}/pets`, {
      dispatcher,
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(PET),
    });
    await body.dump();
    const seconds = headers['retry-after'];
    if (statusCode === 429) throw new TooMany(seconds === undefined ? DEFAULT_RETRY_MS : Number(seconds) * 1_000);
  };
}

async function retry(run: () => Promise<void>, isOver: () => boolean): Promise<void> {
  for (let retries = 0; retries <= MAX_RETRIES && !isOver(); retries += 1) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof TooMany)) throw error;
      await sleep(error.retryAfterMs);
    }
  }
}

async function withDeadline(run: (isOver: () => boolean) => Promise<unknown>): Promise<void> {
  const deadlineMs = Date.now() + MAX_WAIT_MS;
  const running = run(() => Date.now() > deadlineMs).catch(() => undefined);
  // A limiter that is stopped forgets its jobs.
  await Promise.race([running, sleep(MAX_WAIT_MS)]);
}

async function nothing(): Promise<void> {}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
