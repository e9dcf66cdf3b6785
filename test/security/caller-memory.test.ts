import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Dispatcher } from 'undici';
import { expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';

/** Fewer than the callers of unproven keys that petql keeps. */
const KEYS = 900;
const AT_ONCE = 50;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** A pet API that remembers nothing: in this heap, the caller's share would be hard to tell. */
const dispatcher: Pick<Dispatcher, 'destroy' | 'dispatch'> = {
  dispatch(_request, handler) {
    const controller = { abort() {} } as unknown as Parameters<NonNullable<typeof handler.onRequestStart>>[0];
    handler.onRequestStart?.(controller, {});
    handler.onResponseStart?.(controller, 200, { 'content-type': 'application/json' }, 'OK');
    handler.onResponseData?.(controller, Buffer.from('[{"id":1,"name":"Momo","categoryId":3,"status":"available"}]'));
    handler.onResponseEnd?.(controller, {});
    return true;
  },
  destroy: async () => {},
};

/** Once the timers of the last operations are over. */
async function usedHeap(): Promise<number> {
  await new Promise((resolve) => void setTimeout(resolve, 200));
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** The heap that petql takes for each of many keys that send the document once. */
async function bytesPerKey(document: string): Promise<number> {
  const gateway = createGateway({ petApiUrl: 'http://pet-api.test/v1', dispatcher });
  const askWith = async (name: string, count: number) => {
    for (let sent = 0; sent < count; sent += AT_ONCE) {
      const asking = Array.from({ length: AT_ONCE }, (_, index) =>
        gateway.execute({ document, apiKey: `${name}-${sent + index}` }),
      );
      for (const { errors } of await Promise.all(asking)) expect(errors).toBeUndefined();
    }
  };
  await askWith('warm-up', AT_ONCE);
  const beforeBytes = await usedHeap();
  await askWith('key', KEYS);
  const bytes = (await usedHeap()) - beforeBytes;
  await gateway.close();
  return bytes / KEYS;
}

// The response cache keeps no response that shows the quota.
test.each([
  ['2 KB that only looks at its quota', 2_048, '{ rateLimit { plan } }'],
  ['16 KB that has read a list, its account and the list included', 16_384, '{ rateLimit { plan } pets { id } }'],
])('an API key takes at most %s', async (_what, maxBytes, document) => {
  // The first gateway takes what the code itself does, once it is compiled.
  await bytesPerKey(document);
  expect(await bytesPerKey(document)).toBeLessThan(maxBytes);
});
