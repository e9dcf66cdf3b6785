import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { Int64 } from '../../src/pets/int64.ts';
import { listSnapshot, petSnapshot } from '../../src/pets/snapshot.ts';
import { filterOf } from '../../src/pets/read-key.ts';
import type { Snapshot } from '../../src/pets/snapshot.ts';
import { createPetDecoders } from '../../src/pets/wire.ts';
import { snapshotBytes } from '../../src/reads/cache/snapshot-memory.ts';
import { createPetStore } from '../support/pet-api/pet-store.ts';

const NOTHING = { findEarlier: () => undefined, doubtAt: () => 'none' as const, shownBefore: () => [] };

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const { pets: decodeList } = createPetDecoders({ onUnknownValue() {}, onLeftOut() {} });

/** Once what the last snapshots left is gone. */
async function usedHeap(): Promise<number> {
  // What a first collection finds dead, as weak references do, only the next one frees.
  for (let collected = 0; collected < 2; collected += 1) {
    await new Promise((resolve) => void setTimeout(resolve, 50));
    collectGarbage();
  }
  return process.memoryUsage().heapUsed;
}

/** A list of all pets of a store with so many, which it shows whole. */
function listOf(pets: number): Snapshot {
  const { body } = createPetStore({ size: pets }).serve({ method: 'GET', path: '/pets?limit=100', body: '' });
  return listSnapshot('all', decodeList(Buffer.from(body), filterOf('all')), 0, NOTHING);
}

test.each<[string, number, () => Snapshot]>([
  ['a pet that does not exist', 30_000, () => petSnapshot('1' as Int64, null, 0, NOTHING)],
  ['an empty list', 30_000, () => listOf(0)],
  ['a list of one pet', 5_000, () => listOf(1)],
  ['a list of 20 pets', 800, () => listOf(20)],
  ['a list of 99 pets', 200, () => listOf(99)],
])('%s weighs what it takes of the heap, up to three times of it', async (_title, count, snapshotOf) => {
  const make = () => Array.from({ length: count }, snapshotOf);
  make();
  const beforeBytes = await usedHeap();
  const snapshots = make();
  const tookBytes = (await usedHeap()) - beforeBytes;
  const bytes = snapshots.reduce((sum, snapshot) => sum + snapshotBytes(snapshot), 0);
  expect(bytes / tookBytes).toBeGreaterThan(0.95);
  expect(bytes / tookBytes).toBeLessThan(3);
});
