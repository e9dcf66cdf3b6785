import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createPetApi } from '../../support/pet-api.ts';
import { UNLIMITED } from '../../support/strict-plan.ts';
import type { Fared } from './attacked.ts';
import type { ATTACKS } from './attacks.ts';

const ATTACKED = fileURLToPath(new URL('attacked.ts', import.meta.url));
const ATTACKERS = fileURLToPath(new URL('attackers.ts', import.meta.url));

export interface SiegeOptions {
  /** How many connections each attack holds. */
  readonly attacks: Partial<Record<keyof typeof ATTACKS, number>>;
  readonly durationMs: number;
  /** Repeats what the attackers chose. Default: FUZZ_SEED, or another one each time. */
  readonly seed?: number;
}

export interface SiegeResult extends Fared {
  /** What a good caller asked beside the attack, and how much of it was answered with data. */
  readonly asked: number;
  readonly answered: number;
  /** Of the slowest of these answers, in milliseconds. */
  readonly slowestMs: number;
}

/** How often the good caller asks. */
const ASK_EVERY_MS = 50;
const GIVE_UP_MS = 20_000;

/** Attacks a petql process from all sides at once, while one caller asks it as callers do. */
export async function siege({ attacks, durationMs, seed }: SiegeOptions): Promise<SiegeResult> {
  const petApi = createPetApi({ planOf: () => UNLIMITED });
  await using upstream = await petApi.listen();
  const args = [upstream.url];
  // As the image and `npm start` run it.
  const child = fork(ATTACKED, args, { execArgv: [...process.execArgv, '--max-semi-space-size=16'] });
  const [{ origin }] = (await once(child, 'message')) as [{ origin: string }];
  const tookMs: number[] = [];
  let asked = 0;
  const ask = async () => {
    asked += 1;
    const startedAtMs = performance.now();
    if (await isAnswered(origin)) tookMs.push(performance.now() - startedAtMs);
  };
  // What a process does at its first request is nobody's attack.
  for (let warmUp = 0; warmUp < 20; warmUp += 1) await isAnswered(origin);
  // As balancers ask; it loads what most requests do without.
  await fetch(`${origin}/health/live`);
  child.send('reset');

  const chance = seed === undefined ? {} : { FUZZ_SEED: String(seed) };
  const attackers = fork(ATTACKERS, [origin, JSON.stringify(attacks)], { env: { ...process.env, ...chance } });
  await once(attackers, 'message');
  const asking: Promise<void>[] = [];
  for (const endsAtMs = performance.now() + durationMs; performance.now() < endsAtMs; await setTimeout(ASK_EVERY_MS)) {
    asking.push(ask());
    petApi.log.splice(0);
  }
  await Promise.all(asking);
  child.send('fared');
  const [fared] = (await once(child, 'message')) as [Fared];
  for (const each of [attackers, child]) {
    const exited = once(each, 'exit');
    each.disconnect();
    await exited;
  }
  return { ...fared, asked, answered: tookMs.length, slowestMs: Math.max(0, ...tookMs) };
}

async function isAnswered(origin: string): Promise<boolean> {
  try {
    const response = await fetch(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer the-good-one' },
      body: '{"query":"{ pets(limit: 3) { id name } }"}',
      signal: AbortSignal.timeout(GIVE_UP_MS),
    });
    const { data } = (await response.json()) as { data?: { pets?: readonly unknown[] } };
    return data?.pets?.length === 3;
  } catch {
    return false;
  }
}
