/**
 * node load.ts ENDPOINT SECONDS RATE: reads, and one create in forty, at so many a second. Prints what has failed as JSON. A client as the
 * README advises: it sends a create again, with its key, where nothing was done or nobody knows yet.
 */
import { setTimeout } from 'node:timers/promises';
import { post } from '../../support/client.ts';
import { LISTS } from '../../support/pet-api/contract.ts';
import { listField } from '../../support/pet-documents.ts';

/** What did not work. */
export interface LoadFailure {
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  readonly what: string;
}

export interface LoadReport {
  readonly sent: number;
  readonly stale: number;
  readonly slowestMs: number;
  readonly failures: readonly LoadFailure[];
}

const CREATE = 'mutation ($input: CreatePetInput!) { createPet(input: $input) { pet { id } userErrors { message } } }';
const AGAIN = new Set(['IDEMPOTENCY_UNAVAILABLE', 'OUTCOME_PENDING', 'HTTP']);
const MAX_TRIES = 20;

const [, , endpoint = '', seconds, rate] = process.argv;
const failures: LoadFailure[] = [];
const running: Promise<void>[] = [];
let stale = 0;
let slowestMs = 0;

const startedMs = Date.now();
for (let number = 0; Date.now() - startedMs < Number(seconds) * 1_000; number += 1) {
  running.push(number % 40 === 39 ? create(number) : read(number));
  await setTimeout(startedMs + (1_000 * (number + 1)) / Number(rate) - Date.now());
}
await Promise.all(running);
const report: LoadReport = { sent: running.length, stale, slowestMs, failures };
process.stdout.write(`${JSON.stringify(report)}\n`);

async function read(number: number): Promise<void> {
  const document =
    number % 2 === 0
      ? `{ ${listField(LISTS[number % LISTS.length] ?? 'all', 1 + (number % 7))} { id name } }`
      : `{ petsById(ids: ["${1 + ((number * 7) % 250)}"]) { name } }`;
  note('read', await send(document));
}

async function create(number: number): Promise<void> {
  const input = { name: `Momo ${number}`, categoryId: '3', idempotencyKey: crypto.randomUUID() };
  let code = await send(CREATE, { input });
  for (let tries = 1; AGAIN.has(code ?? '') && tries < MAX_TRIES; tries += 1) {
    await setTimeout(500);
    code = await send(CREATE, { input });
  }
  note('create', code);
}

/** Returns the code of an error, or HTTP where there was no response of petql. */
async function send(document: string, variables?: Record<string, unknown>): Promise<string | undefined> {
  const sentMs = Date.now();
  try {
    const { errors, extensions } = await post(endpoint, document, variables ? { variables } : {});
    if (extensions?.['petql']?.staleReason) stale += 1;
    return errors?.[0]?.extensions.code;
  } catch {
    return 'HTTP';
  } finally {
    slowestMs = Math.max(slowestMs, Date.now() - sentMs);
  }
}

function note(kind: string, code: string | undefined): void {
  if (code !== undefined) failures.push({ atMs: Date.now(), what: `${kind} ${code}` });
}
