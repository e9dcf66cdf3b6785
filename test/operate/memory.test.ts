import { expect, onTestFinished, test } from 'vitest';
import { OUTSIDE_HEAP, bytesFor, neededHeap } from '../../src/common/memory.ts';
import type { MemoryPart } from '../../src/common/memory.ts';
import { startPetql } from '../support/run-petql.ts';

const CONTAINER_BYTES = 512 * 2 ** 20;
/** What Node gives the heap in such a container. */
const HEAP_BYTES = CONTAINER_BYTES / 2;
/** Code, stacks and libraries; measured. */
const PROCESS_BYTES = 100_000_000;

test('all that petql may keep fits into a container of 512 MB', () => {
  expect(neededHeap(HEAP_BYTES)).toBeLessThanOrEqual(HEAP_BYTES);
  const outside = Object.keys(OUTSIDE_HEAP) as MemoryPart[];
  const buffers = outside.reduce((sum, part) => sum + bytesFor(part, HEAP_BYTES), 0);
  expect(HEAP_BYTES + buffers + PROCESS_BYTES).toBeLessThanOrEqual(CONTAINER_BYTES);
});

test.each([
  [64, 1],
  [256, 0],
])('a heap of %i MB is logged where it is too small', async (heapMb, lines) => {
  const nodeOptions = [`--max-old-space-size=${heapMb}`];
  const petql = await startPetql(['--port', '0', '--sandbox'], { nodeOptions });
  onTestFinished(() => petql.kill('SIGKILL'));
  const { stdout, stderr } = petql.output;
  expect(`${stdout}${stderr}`.match(/the heap is too small/g) ?? []).toHaveLength(lines);
});
