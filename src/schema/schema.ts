import { GraphQLError } from 'graphql';
import type { GraphQLFieldResolver, GraphQLSchema } from 'graphql';
import { builder } from './builder.ts';
import type { ResolverContext } from './builder.ts';
import './create-pet.ts';
import './query.ts';

const DESCRIPTION = `
petql reads and adds pets of a pet API whose rate plan limits the calls per minute and per day. It answers as many reads as
possible from each call, keeps within the plan, and serves cached data when the plan is exhausted.

Send the API key as \`Authorization: Bearer <API_KEY>\`. Each response says in \`extensions.petql\` what it cost:

- \`upstreamCalls\`: calls that petql made for this operation
- \`savedCalls\`: reads that cost no call of this operation
- \`oldestAgeMs\`: age of the oldest data in the result
- \`staleReason\`: why data is older than requested: SAVING_QUOTA, QUOTA_EXHAUSTED, CALLS_IN_FLIGHT, PAUSED (after a 429),
  UPSTREAM_FAILED or ONLY_IF_CACHED; absent when all data is fresh
- \`freshAt\`: beside it, when it is worth asking again

The header \`petql-dry-run: 1\` runs nothing and returns the maximum cost in \`extensions.petql.dryRun\`.
`.trim();

// The file of each write adds its field.
builder.mutationType({ description: 'All writes. Each uses the API key of the request.' });

/** The GraphQL API. It holds no state, so that any number of gateways can share it. */
export const schema: GraphQLSchema = builder.toSchema({ sortSchema: false });
// Pothos has no option for it.
schema.description = DESCRIPTION;

for (const type of [schema.getQueryType(), schema.getMutationType()]) {
  for (const field of Object.values(type?.getFields() ?? {})) field.resolve = withinPetql(field.resolve);
}

/** A program may give the schema to a server of its own, whose context is another one. */
function withinPetql(
  resolve: GraphQLFieldResolver<unknown, ResolverContext> | undefined,
): GraphQLFieldResolver<unknown, ResolverContext> {
  return (root, args, context: Partial<ResolverContext> | undefined, info) => {
    if (typeof context?.pets?.readQuota !== 'function') throw new GraphQLError(ELSEWHERE);
    return resolve?.(root, args, context as ResolverContext, info);
  };
}

const ELSEWHERE =
  'gateway.schema runs in petql alone: call gateway.execute or gateway.fetch, or stitch it with an executor that calls gateway.execute.';
