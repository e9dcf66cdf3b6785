import {
  GraphQLError,
  NoFragmentCyclesRule,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import type { DocumentNode } from 'graphql';
import { LRUCache } from 'lru-cache';
import type { CheckedOptions, Limits } from '../../settings.ts';
import { schema } from '../../schema/schema.ts';
import { limitExceeded } from './limit-exceeded.ts';
import { checkQueryLimits } from './query-limits.ts';

/**
 * Parses a document that is within the limits.
 *
 * @throws PetqlError LIMIT_EXCEEDED, or the GraphQLError of a document that is not GraphQL.
 */
export function parseWithin(text: string, limits: Limits): DocumentNode {
  const { maxTokens, maxDepth } = limits;
  // Errors of longer texts have no locations: each would search the text for its line.
  const noLocation = text.length > LONG_TEXT || text.split('\n', MAX_LINES + 1).length > MAX_LINES;
  try {
    const document = parse(text, { maxTokens, noLocation });
    checkQueryLimits(document, limits);
    return document;
  } catch (error) {
    // The parser calls itself for each bracket, which only a high maxTokens lets overflow the stack.
    if (error instanceof RangeError) throw limitExceeded('depth', maxDepth);
    throw error instanceof GraphQLError && TOO_MANY_TOKENS.test(error.message)
      ? limitExceeded('tokens', maxTokens)
      : error;
  }
}

const TOO_MANY_TOKENS = /^Syntax Error: Document contains more than \d+ tokens/;
const LONG_TEXT = 10_000;
const MAX_LINES = 500;
const MAX_ERRORS = 20;

/** @returns the errors of an invalid document; of cyclic fragments first, since other rules may overflow the stack on those. */
export function validationErrors(document: DocumentNode, { introspection }: CheckedOptions): readonly GraphQLError[] {
  const rules = introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];
  // Suggestions cost time by the length of the names.
  const isLongText = (document.loc?.source.body.length ?? Infinity) > LONG_TEXT;
  const options = { maxErrors: MAX_ERRORS, hideSuggestions: !introspection || isLongText };
  const cycles = validate(schema, document, [NoFragmentCyclesRule], options);
  return cycles.length > 0 ? cycles : validate(schema, document, rules, options);
}

/** Memory that a token of a cached document takes, with its share of the tree; measured. */
const TOKEN_BYTES = 300;
const MAX_CACHE_BYTES = 24_000_000;

/** Yoga's cache of parsed documents. Those that cannot be parsed are parsed again. */
export function createDocumentCaches() {
  const documentCache = new LRUCache<string, DocumentNode>({
    maxSize: MAX_CACHE_BYTES,
    sizeCalculation: ({ tokenCount = 0 }, text) => 2 * text.length + TOKEN_BYTES * tokenCount + 1,
  });
  return { documentCache, errorCache: { get: () => undefined, set() {} } };
}
