import SchemaBuilder from '@pothos/core';
import type { Pets } from '../caller/request-context.ts';

/** What Yoga hands to each resolver. */
export interface ResolverContext {
  readonly pets: Pets;
}

/** Fields are nullable by default, so that a field that fails leaves its siblings intact. */
export const builder = new SchemaBuilder<{
  Context: ResolverContext;
  Scalars: { ID: { Input: string; Output: string }; DateTime: { Input: never; Output: string } };
}>({});
