import { setTimeout } from 'node:timers/promises';
import { between } from '../prove/random.ts';
import type { Random } from '../prove/random.ts';
import { post } from './post.ts';
import { WAITS, cacheControlText, nextAsk, sameCreation } from './asks.ts';
import type { Ask } from './asks.ts';
import type { Fleet, Target } from './fleet.ts';
import { fieldOf } from './operation.ts';
import type { Answer, Asked, HeardWrite, Operation, Outcome, WantedPet } from './operation.ts';
import type { PetStore } from './pet-store.ts';

/** Many clients of several keys: operations of all kinds begin at a steady rate, with bursts among them. */
export interface Clients {
  readonly sent: number;
  /** Settles once every operation is over. */
  stop(): Promise<void>;
}

export interface ClientsOptions {
  readonly fleet: Fleet;
  readonly random: Random;
  /** Keys, how often each is used beside the others, and what they see. */
  readonly keys: readonly { readonly key: string; readonly share: number; readonly store: PetStore }[];
  readonly perSecond: number;
  /** An operation is over. */
  onOperation(operation: Operation): void;
}

/** Longer than any answer may take, a stopped process included. */
const HANGS_MS = 60_000;
/** Further ones are not sent: a load that nobody could answer says nothing. */
const MOST_UNDER_WAY = 1_000;
const BURST = 25;
const MOST_AT_ONCE = 5;
const WARM_UP_MS = 8_000;
const MOST_SUBMITS = 6;
/** The other replicas are told within half a second. */
const HEARD_MS = 1_000;
/** Of a key's creations, so many are enough to find the last one that all have heard of. */
const REMEMBERED_WRITES = 200;

export function startClients({ fleet, random, keys, perSecond, onOperation }: ClientsOptions): Clients {
  const stopping = new AbortController();
  const underWay = new Set<Promise<unknown>>();
  /** When what each process told of last was carried out, by key. */
  const writes = new Map<string, number>();
  /** By key, the one whose answer came last at the end. */
  const told = new Map<string, HeardWrite[]>();
  let sent = 0;
  let names = 0;
  const running = run();

  return {
    get sent() {
      return sent;
    },
    async stop() {
      stopping.abort();
      await running;
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };

  async function run(): Promise<void> {
    const startedMs = performance.now();
    let lastMs = startedMs;
    let due = 0;
    while (!stopping.signal.aborted) {
      const nowMs = performance.now();
      // New processes have their code to compile.
      const warm = Math.min(1, 0.1 + (nowMs - startedMs) / WARM_UP_MS);
      // What was missed while the machine was busy is not caught up with.
      due = Math.min(due + ((nowMs - lastMs) / 1_000) * perSecond * warm, MOST_AT_ONCE);
      lastMs = nowMs;
      for (; due >= 1; due -= 1) {
        const { key, store } = nextKey();
        const times = random() < 0.002 ? BURST : 1;
        for (let index = 0; index < times && underWay.size < MOST_UNDER_WAY; index += 1) begin(key, store);
      }
      await setTimeout(10);
    }
  }

  function nextKey() {
    let left = random() * keys.reduce((sum, { share }) => sum + share, 0);
    const found = keys.find(({ share }) => (left -= share) < 0) ?? keys[0];
    if (!found) throw new Error('expected keys');
    return found;
  }

  function begin(key: string, store: PetStore): void {
    if (random() < 0.005) return track(send(`wrong-${between(random, 1, 5)}`, undefined, strangerAsk()));
    const newName = () => `${key}-${(names += 1)}`;
    const ask = nextAsk(random, { ids: store.ids, newName });
    const pet = ask.asked.length === 1 ? keyedPet(ask.asked[0]) : undefined;
    track(pet ? insist(key, store, { ask, pet }) : send(key, store, ask));
    // Two who submit the same at the same time.
    if (pet && random() < 0.1) track(send(key, store, sameCreation(pet)));
  }

  function track(work: Promise<unknown>): void {
    const end: Promise<unknown> = work.finally(() => underWay.delete(end));
    underWay.add(end);
  }

  /** Until the outcome is known, as clients do who have a key for it; and now and then once more. */
  async function insist(key: string, store: PetStore, { ask, pet }: { ask: Ask; pet: WantedPet }): Promise<void> {
    let next = ask;
    for (let submits = 1; submits <= MOST_SUBMITS; submits += 1) {
      const settled = isSettled(await send(key, store, next));
      if (stopping.signal.aborted || (settled && random() < 0.8)) return;
      await setTimeout(between(random, 20, 3_000));
      next = sameCreation(pet);
    }
  }

  async function send(key: string, store: PetStore | undefined, ask: Ask): Promise<Outcome> {
    const target = await nextTarget();
    sent += 1;
    const life = `${key} ${target.replica}.${target.life}`;
    const afterWriteMs = writes.get(life) ?? -Infinity;
    const startedMs = performance.now();
    const heardWrite = told.get(key)?.findLast(({ toldMs }) => toldMs <= startedMs - HEARD_MS);
    const outcome = await exchange(target, key, ask);
    const endedMs = performance.now();
    noteWrites({ key, life, endedMs }, store, { ask, outcome });
    const { asked, meant, waitMs, cacheControl } = ask;
    const { replica } = target;
    const times = { startedMs, endedMs, waitMs, afterWriteMs, heardWrite };
    onOperation({ key, replica, life: target.life, ...times, cacheControl, asked, meant, outcome });
    return outcome;
  }

  async function nextTarget(): Promise<Target> {
    for (;;) {
      const targets = fleet.inService();
      const target = targets[between(random, 0, targets.length - 1)];
      if (target) return target;
      await setTimeout(20);
    }
  }

  function noteWrites(
    { key, life, endedMs }: { key: string; life: string; endedMs: number },
    store: PetStore | undefined,
    { ask, outcome }: { ask: Ask; outcome: Outcome },
  ): void {
    if (outcome.kind !== 'answered' || !store) return;
    for (const [position, field] of ask.asked.entries()) {
      if (field.kind !== 'create' || !fieldOf(outcome.answer, position).value?.pet) continue;
      const atMs = store.addedAs(field.pet.name).at(-1)?.atMs ?? -Infinity;
      writes.set(life, Math.max(writes.get(life) ?? -Infinity, atMs));
      const all = told.get(key) ?? [];
      told.set(key, all);
      all.push({ atMs, toldMs: endedMs });
      if (all.length > REMEMBERED_WRITES) all.shift();
    }
  }
}

/** With a key that the service does not know; petql may not call with it for a while, and then says the same. */
function strangerAsk(): Ask {
  const meant = ['UNAUTHENTICATED', 'DOWNSTREAM_SERVICE_ERROR', 'GATEWAY_TIMEOUT', 'RATE_LIMITED'];
  const usual = { waitMs: WAITS.maxWaitMs, cacheControl: {}, leavesAfterMs: undefined, headers: {} };
  return { query: '{ pets { id } }', variables: {}, asked: [], meant, ...usual };
}

function keyedPet(asked: Asked | undefined): WantedPet | undefined {
  return asked?.kind === 'create' && asked.pet.idempotencyKey !== undefined ? asked.pet : undefined;
}

function isSettled(outcome: Outcome): boolean {
  if (outcome.kind !== 'answered') return false;
  const { value, error } = fieldOf(outcome.answer, 0);
  return value || error?.extensions?.code === 'OUTCOME_UNKNOWN';
}

async function exchange({ endpoint }: Target, key: string, ask: Ask): Promise<Outcome> {
  const { query, variables, cacheControl, leavesAfterMs, headers } = ask;
  const signal = AbortSignal.timeout(leavesAfterMs ?? HANGS_MS);
  const cache = cacheControlText(cacheControl);
  try {
    const { httpStatus, text } = await post(endpoint, {
      headers: { authorization: `Bearer ${key}`, ...(cache ? { 'cache-control': cache } : {}), ...headers },
      body: JSON.stringify({ query, variables }),
      signal,
    });
    return { kind: 'answered', httpStatus, answer: JSON.parse(text) as Answer };
  } catch (error) {
    if (signal.aborted) return { kind: leavesAfterMs === undefined ? 'hung' : 'left' };
    return { kind: 'lost', reason: String(error) };
  }
}
