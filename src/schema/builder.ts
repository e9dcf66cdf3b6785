import SchemaBuilder from '@pothos/core';
import type { BudgetView } from '../caller/budget.ts';
import type { Pets } from '../caller/pets.ts';

/** All that a resolver sees of its request. Without an API key, each of it fails with UNAUTHENTICATED. */
export interface ResolverContext {
  /** The reads and writes of whoever asks. */
  readonly pets: Pets;
  /** What whoever asks has left of the plan. */
  budget(): Promise<BudgetView>;
}

/** Fields are nullable unless they say otherwise, so that a field that fails leaves its siblings standing. */
export const builder = new SchemaBuilder<{
  Context: ResolverContext;
  Scalars: { ID: { Input: string; Output: string }; DateTime: { Input: never; Output: Date } };
}>({});
