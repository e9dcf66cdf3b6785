import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway } from '../support/start-gateway.ts';
import type { TestGateway } from '../support/start-gateway.ts';
import { exchange, wireRequest } from '../support/wire.ts';
import { CORS_ORIGINS, MANIFEST, REPORTS } from './reports.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ gateway: { corsOrigins: CORS_ORIGINS, trustedDocuments: MANIFEST, maxDepth: 2 } });
});
afterAll(() => gateway[Symbol.asyncDispose]());

test.each(REPORTS)('$report: $sends', async ({ request, response: [status, ...parts] }) => {
  const response = await exchange(wireRequest(request), gateway.endpoint);
  expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  for (const part of parts) expect(response).toMatch(part);
});
