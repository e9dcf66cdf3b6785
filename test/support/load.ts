import { setTimeout } from 'node:timers/promises';
import { createPet } from './client.ts';
import { outcomeOf } from './operation.ts';
import type { Operation } from './operation.ts';
import type { Random } from './random.ts';
import { between } from './random.ts';

/** Clients that each create one pet after the other, so that they always want more than a plan allows. */
export interface Load {
  readonly operations: readonly Operation[];
  /** Aborts what still waits, and settles once every operation is over. */
  readonly stop: () => Promise<void>;
}

export interface LoadOptions {
  /** Where each replica is, which may change as it is restarted. */
  readonly endpoints: readonly (() => string)[];
  readonly key: string;
  readonly clientsPerReplica: number;
  readonly random: Random;
  /** How long an operation may wait, in whole seconds. Default: 1 to 69, chosen for each. */
  readonly waitSeconds?: () => number;
}

/** A client that was refused comes back when it was told to, and within this time: the time may be wrong. */
const MAX_BREAK_MS = 20_000;
const AFTER_FAILURE_MS = 200;

export function startLoad(options: LoadOptions): Load {
  const { endpoints, key, clientsPerReplica, random, waitSeconds = () => between(random, 1, 69) } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const operations: Operation[] = [];
  const clients = endpoints.flatMap((endpoint) => Array.from({ length: clientsPerReplica }, () => runClient(endpoint)));
  return {
    operations,
    async stop() {
      stopping.abort();
      await Promise.all(clients);
    },
  };

  async function runClient(endpoint: () => string): Promise<void> {
    // Not all in the same moment.
    await pause(between(random, 0, 500));
    while (!signal.aborted) {
      const pet = { name: `${key} ${operations.length + 1}`, categoryId: '1' };
      const operation = await createPet(endpoint(), { key, pet, waitSeconds: waitSeconds(), signal, operations });
      const { outcome } = operation;
      if (outcomeOf(operation) === 'created') continue;
      const retryAfterMs = outcome.kind === 'answered' && outcome.answer.errors?.[0]?.extensions.retryAfterMs;
      await pause(Math.min(retryAfterMs || AFTER_FAILURE_MS, MAX_BREAK_MS));
    }
  }

  async function pause(ms: number): Promise<void> {
    await setTimeout(ms, undefined, { signal }).catch(() => {});
  }
}
