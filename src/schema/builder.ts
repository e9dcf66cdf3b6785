import SchemaBuilder from '@pothos/core';
import type { QuotaView } from '../caller/quota.ts';
import type { Pets } from '../caller/request-pets.ts';

/** What a resolver sees of its request. Without an API key, each part fails with UNAUTHENTICATED. */
export interface ResolverContext {
  /** The reads and writes of the caller. */
  readonly pets: Pets;
  /** What is left of the caller's quota; null in a dry run. */
  readonly quota: () => Promise<QuotaView | null>;
}

/** Fields are nullable by default, so that a field that fails leaves its siblings intact. */
export const builder = new SchemaBuilder<{
  Context: ResolverContext;
  Scalars: { ID: { Input: string; Output: string }; DateTime: { Input: never; Output: Date } };
}>({});
