import Bottleneck from 'bottleneck';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };

test('Bottleneck is pinned, and has the private parts that petql replaces', () => {
  expect(packageJson.dependencies.bottleneck).toMatch(/^\d+\.\d+\.\d+$/);
  expect(new Bottleneck({ maxConcurrent: 1 })).toMatchObject({
    _store: { yieldLoop: expect.any(Function), _nextRequest: expect.any(Number) },
    _submitLock: { schedule: expect.any(Function), isEmpty: expect.any(Function) },
    _registerLock: { schedule: expect.any(Function) },
    _queues: { Events: { trigger: expect.any(Function) } },
    Events: { trigger: expect.any(Function) },
  });
});
