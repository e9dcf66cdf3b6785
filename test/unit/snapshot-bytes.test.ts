import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { Int64 } from '../../src/pets/int64.ts';
import { listSnapshot, petSnapshot } from '../../src/pets/snapshot.ts';
import type { Snapshot } from '../../src/pets/snapshot.ts';
import { createPetDecoders } from '../../src/pets/wire.ts';
import { snapshotBytes } from '../../src/reads/cache/snapshot-memory.ts';
import { createPetStore } from '../support/pet-api/pet-store.ts';

const NOTHING = { findEarlier: () => undefined, createdShortlyBefore: () => new Set<never>() };
const PETS = 20_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const { pets: decodeList } = createPetDecoders({ onUnknownStatus() {}, onLeftOut() {} });

/** Once what the last snapshots left is gone. */
async function usedHeap(): Promise<number> {
  await new Promise((resolve) => void setTimeout(resolve, 50));
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** A list of all pets of a store that it shows whole, or one that has no pet. */
function snapshotOf(pets: number): Snapshot {
  if (pets === 0) return petSnapshot('1' as Int64, null, 0, NOTHING);
  const { body } = createPetStore({ size: pets }).serve({ method: 'GET', path: '/pets?limit=100', body: '' });
  return listSnapshot('all', decodeList(Buffer.from(body), { status: undefined }), 0, NOTHING);
}

test.each([0, 1, 20, 99])(
  '%i pets that a call showed weigh what they take of the heap, up to three times of it',
  async (pets) => {
    const count = Math.floor(PETS / (pets + 3));
    const make = () => Array.from({ length: count }, () => snapshotOf(pets));
    make();
    const beforeBytes = await usedHeap();
    const snapshots = make();
    const tookBytes = (await usedHeap()) - beforeBytes;
    const bytes = snapshots.reduce((sum, snapshot) => sum + snapshotBytes(snapshot), 0);
    expect(bytes / tookBytes).toBeGreaterThan(0.9);
    expect(bytes / tookBytes).toBeLessThan(3);
  },
);
