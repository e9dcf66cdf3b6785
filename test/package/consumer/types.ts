import type { TypedDocumentNode } from '@graphql-typed-document-node/core';
import { parse, printSchema } from 'graphql';
import { createGateway } from 'petql';
import type { DryRun, ErrorCode, Gateway, GatewayOptions, Log, OperationResult, Usage } from 'petql';

interface Data {
  pet: { id: string; name: string } | null;
}

const PET: TypedDocumentNode<Data, { id: string }> = parse('query ($id: ID!) { pet(id: $id) { id name } }');
const LIST: TypedDocumentNode<{ pets: { id: string }[] | null }, { [key: string]: never }> = parse('{ pets { id } }');

const log: Log = console;
const options: GatewayOptions = { petApiUrl: new URL('https://pets.example/v1'), log, plan: '500/20000' };
await using gateway: Gateway = createGateway({
  ...options,
  petApiKey: async ({ headers }) => headers.get('x-key') ?? undefined,
});

const result: OperationResult<Data> = await gateway.execute({
  document: PET,
  variables: { id: '1' },
  signal: AbortSignal.timeout(1),
});
const { data, errors, extensions } = result;
const { upstreamCalls, oldestAgeMs, staleReason, dryRun } = extensions?.petql ?? {};
const usage: readonly (number | string | undefined)[] = [upstreamCalls, oldestAgeMs, staleReason, dryRun?.waitMs];
const name: string | undefined = data?.pet?.name;
const codes: readonly ErrorCode[] = (errors ?? []).map(({ extensions: { code } }) => code);
const retryAfterMs: number | undefined = errors?.[0]?.extensions.retryAfterMs;
const retryAt: string | undefined = errors?.[0]?.extensions.retryAt;
const window: 'DAY' | 'MINUTE' | undefined = errors?.[0]?.extensions.window;
const { argument, upstream, limit, max } = errors?.[0]?.extensions ?? {};
const details: readonly (number | string | undefined)[] = [argument, upstream?.status, upstream?.code, limit, max];
const cost: DryRun | undefined = dryRun;
const whole: Usage | undefined = extensions?.petql;
const ids: string[] | undefined = (await gateway.execute({ document: LIST })).data?.pets?.map(({ id }) => id);
const anything: Record<string, unknown> | null | undefined = (await gateway.execute({ document: '{ pets { id } }' }))
  .data;
const sdl: string = printSchema(gateway.schema);
const asFetch: typeof fetch = gateway.fetch;
const status: number = (await gateway.fetch('/graphql', { method: 'POST', body: '{}' })).status;

// @ts-expect-error -- there is no such code
export const isPast = codes[0] === 'TOO_LATE';
// @ts-expect-error -- there is no such figure
export const spent = extensions?.petql.callsSpent;
// @ts-expect-error -- the variable is required
await gateway.execute({ document: PET });
// @ts-expect-error -- it is a string
await gateway.execute({ document: PET, variables: { id: 1 } });
// @ts-expect-error -- there is no such field
export const wings = data?.pet?.wings;
// @ts-expect-error -- the address is required
createGateway({});
// @ts-expect-error -- this is no document
await gateway.execute({ document: { query: '{ pets { id } }' } });

export { anything, asFetch, codes, cost, details, ids, name, retryAfterMs, retryAt, sdl, status, usage, whole, window };
