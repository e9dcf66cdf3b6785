import type { GraphQLSchema } from 'graphql';
import { builder } from './builder.ts';
import './create-pet.ts';
import './query.ts';

/** The GraphQL API. It holds no state, so that any number of gateways can share it. */
export const schema: GraphQLSchema = builder.toSchema({ sortSchema: false });
