import { setTimeout } from 'node:timers/promises';
import { attempt } from '../../support/client.ts';
import type { Fleet, Replica } from '../../support/fleet.ts';
import { hasWritten, isWrite, outcomeOf } from '../../support/operation.ts';
import type { HeardWrite, Operation, Outcome, WriteField } from '../../support/operation.ts';
import type { PetStore } from '../../support/pet-api/pet-store.ts';
import { between } from '../../support/random.ts';
import type { Random } from '../../support/random.ts';
import { nextOperation, operationOf, operationOfWrongKey } from './operations.ts';
import type { Sending } from './operations.ts';

/** Many clients of several keys: operations of all kinds begin at a steady rate, with bursts among them. */
export interface Clients {
  readonly sent: number;
  /** Settles once every operation is over. */
  readonly stop: () => Promise<void>;
}

export interface ClientsOptions {
  readonly fleet: Fleet;
  readonly random: Random;
  /** Keys, and what they see. A key that is used more often is there several times. */
  readonly keys: readonly SoakKey[];
  readonly perSecond: number;
  /** An operation is over. */
  readonly onOperation: (operation: Operation) => void;
}

interface SoakKey {
  readonly key: string;
  readonly store: PetStore;
}

/** Longer than any response may take, that of a frozen process included. */
const HANGS_MS = 60_000;
/** More operations are not sent: a load that no server could answer shows nothing. */
const MAX_IN_FLIGHT = 1_000;
const BURST = 25;
const WARM_UP_MS = 8_000;
const MAX_SUBMITS = 6;
/** The other replicas hear of a write within half a second. */
const HEARD_MS = 1_000;
/** Of a key's creates, so many are enough to find the last one that all have heard of. */
const REMEMBERED_WRITES = 200;

export function startClients({ fleet, random, keys, perSecond, onOperation }: ClientsOptions): Clients {
  const stopping = new AbortController();
  const inFlight = new Set<Promise<unknown>>();
  /** When the last pet was created whose response each process sent, by process and key. */
  const writes = new Map<string, number>();
  /** By key, the one whose response came last at the end. */
  const heard = new Map<string, HeardWrite[]>();
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
      while (inFlight.size > 0) await Promise.all(inFlight);
    },
  };

  async function run(): Promise<void> {
    const startedMs = performance.now();
    while (!stopping.signal.aborted) {
      const key = keys[between(random, 0, keys.length - 1)] as SoakKey;
      const times = random() < 0.002 ? BURST : 1;
      for (let index = 0; index < times && inFlight.size < MAX_IN_FLIGHT; index += 1) begin(key);
      // New processes have their code to compile. What was missed while the machine was busy is not caught up with.
      const warm = Math.min(1, 0.1 + (performance.now() - startedMs) / WARM_UP_MS);
      await setTimeout(1_000 / perSecond / warm);
    }
  }

  function begin({ key, store }: SoakKey): void {
    if (random() < 0.005) return track(send(`wrong-${between(random, 1, 5)}`, undefined, operationOfWrongKey()));
    const sending = nextOperation(random, { ids: store.ids, newName: () => `${key}-${(names += 1)}` });
    const [field] = sending.fields;
    const isKeyed = sending.fields.length === 1 && field?.kind === 'create' && field.pet.idempotencyKey !== undefined;
    track(isKeyed ? retry(key, store, sending) : send(key, store, sending));
    // Two clients that submit the same at the same time.
    if (isKeyed && random() < 0.1) track(send(key, store, operationOf(sending.fields)));
  }

  function track(work: Promise<unknown>): void {
    const end: Promise<unknown> = work.finally(() => inFlight.delete(end));
    inFlight.add(end);
  }

  /** Until the outcome is known, as clients do with an idempotency key; and now and then once more. */
  async function retry(key: string, store: PetStore, first: Sending): Promise<void> {
    for (let submits = 0; submits < MAX_SUBMITS; submits += 1) {
      const sending = submits === 0 ? first : operationOf(first.fields);
      const outcome = outcomeOf({ outcome: await send(key, store, sending) });
      const isSettled = outcome === 'created' || outcome === 'OUTCOME_UNKNOWN';
      if (stopping.signal.aborted || (isSettled && random() < 0.8)) return;
      await setTimeout(between(random, 20, 3_000));
    }
  }

  async function send(key: string, store: PetStore | undefined, sending: Sending): Promise<Outcome> {
    const { query, variables, leavesAfterMs, headers, ...promised } = sending;
    const { index: replica, life, process } = await nextReplica();
    sent += 1;
    const writer = `${key} ${replica}.${life}`;
    const afterWriteMs = writes.get(writer) ?? -Infinity;
    const startedMs = performance.now();
    const heardWrite = heard.get(key)?.findLast(({ answeredMs }) => answeredMs <= startedMs - HEARD_MS);
    let outcome = await attempt(process.address, query, {
      variables,
      headers: { authorization: `Bearer ${key}`, ...headers },
      signal: AbortSignal.timeout(leavesAfterMs ?? HANGS_MS),
    });
    if (outcome.kind === 'left' && leavesAfterMs === undefined) outcome = { kind: 'hung' };
    const times = { startedMs, endedMs: performance.now(), afterWriteMs, heardWrite };
    const operation = { key, replica, life, ...times, ...promised, outcome };
    if (store) noteWrites(operation, writer, store);
    onOperation(operation);
    return outcome;
  }

  async function nextReplica(): Promise<Replica> {
    for (;;) {
      const serving = fleet.replicas.filter(({ isServing }) => isServing);
      const replica = serving[between(random, 0, serving.length - 1)];
      if (replica) return replica;
      await setTimeout(20);
    }
  }

  function noteWrites(operation: Operation, writer: string, store: PetStore): void {
    const { key, endedMs, fields } = operation;
    for (const [position, field] of fields.entries()) {
      if (!isWrite(field) || !hasWritten(operation, field, position)) continue;
      const createdMs = writtenAtMs(field, store) ?? -Infinity;
      writes.set(writer, Math.max(writes.get(writer) ?? -Infinity, createdMs));
      const all = [...(heard.get(key) ?? []), { createdMs, answeredMs: endedMs }];
      heard.set(key, all.slice(-REMEMBERED_WRITES));
    }
  }
}

/** When the write of a field was carried out. */
function writtenAtMs(field: WriteField, store: PetStore): number | undefined {
  switch (field.kind) {
    case 'create':
      return store.addedAs(field.pet.name).at(-1)?.atMs;
  }
}
