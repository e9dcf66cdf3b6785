import {
  GraphQLError,
  NoFragmentCyclesRule,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import type { ASTVisitor, DocumentNode, ValidationContext } from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import { LRUCache } from 'lru-cache';
import { bytesFor } from '../../common/memory.ts';
import type { CheckedOptions, RequestLimits } from '../../settings/settings.ts';
import { schema } from '../../schema/schema.ts';
import { graphqlError, parseFailure } from '../errors.ts';
import { limitExceeded } from './limit-exceeded.ts';
import { queryLimitError } from './query-limits.ts';

/** Holds documents to their limits while Yoga parses and validates them, and caches those that are valid. */
export function useDocumentLimits(settings: CheckedOptions): Plugin {
  const validDocuments = createDocumentCache();
  return {
    onParse({ params, setParsedDocument, setParseFn }) {
      const cached = validDocuments.get(String(params.source));
      if (cached) setParsedDocument(cached);
      else setParseFn((text: string) => parseWithin(text, settings));
    },
    onValidate({ params, context, setResult, setValidationFn }) {
      const text = (context as YogaInitialContext).params.query ?? '';
      const document = params.documentAST;
      if (validDocuments.peek(text) === document) {
        setResult([]);
        return undefined;
      }

      setValidationFn(() => validationErrors(document, settings));
      return ({ valid }) => {
        if (valid) validDocuments.set(text, document);
      };
    },
  };
}

/**
 * Parses a document that is within the limits.
 *
 * @throws GraphQLError LIMIT_EXCEEDED or GRAPHQL_PARSE_FAILED.
 */
export function parseWithin(text: string, limits: RequestLimits): DocumentNode {
  const document = parseTokens(text, limits);
  const limitError = queryLimitError(document, limits);
  if (limitError) throw graphqlError(limitError);
  return document;
}

function parseTokens(text: string, { maxTokens, maxDepth }: RequestLimits): DocumentNode {
  try {
    return parse(text, { maxTokens, noLocation: isLong(text) });
  } catch (error) {
    // The parser calls itself for each bracket, which only a high maxTokens lets overflow the stack.
    if (error instanceof RangeError) throw graphqlError(limitExceeded('depth', maxDepth));
    if (!(error instanceof GraphQLError)) throw error;
    throw TOO_MANY_TOKENS.test(error.message) ? graphqlError(limitExceeded('tokens', maxTokens)) : parseFailure(error);
  }
}

/** graphql 16 says "more that". */
const TOO_MANY_TOKENS = /^Syntax Error: Document contains more tha[nt] \d+ tokens/;

/** Errors of longer texts have no locations: each would search the text for its line. */
function isLong(text: string): boolean {
  return text.length > LONG_TEXT || text.split('\n', MAX_DOCUMENT_LINES + 1).length > MAX_DOCUMENT_LINES;
}

const LONG_TEXT = 10_000;
const MAX_DOCUMENT_LINES = 500;
const MAX_ERRORS = 20;

/** The budget of graphql-js for fields that may conflict, and what it says where a document exceeds that. */
const MAX_COMPARISONS = 500_000;
const TOO_MANY_COMPARISONS = 'Validation aborted.';

/**
 * @returns the errors of an invalid document, each message once, since one name can be wrong in many places. Those of cyclic
 * fragments come first: other rules may overflow the stack on such.
 */
export function validationErrors(document: DocumentNode, { introspection }: CheckedOptions): readonly GraphQLError[] {
  const rules = introspection ? VALIDATION_RULES : [...VALIDATION_RULES, NoSchemaIntrospectionCustomRule];
  // Suggestions cost time by the length of the names.
  const isLongText = (document.loc?.source.body.length ?? Infinity) > LONG_TEXT;
  const options = { maxErrors: MAX_ERRORS, hideSuggestions: !introspection || isLongText };
  const cycles = validate(schema, document, [NoFragmentCyclesRule], options);
  const errors = cycles.length > 0 ? cycles : validate(schema, document, rules, options);
  const messages = errors.map(({ message }) => message);
  return errors.filter(({ message }, index) => messages.indexOf(message) === index).map(namedLimit);
}

/** A rule that graphql 17 has too: no other rule of graphql 16 looks at operations whose root type the schema does not have. */
function rejectUnknownOperations(context: ValidationContext): ASTVisitor {
  return {
    OperationDefinition(node) {
      if (schema.getRootType(node.operation)) return;
      const message = `The ${node.operation} operation is not supported by the schema.`;
      context.reportError(new GraphQLError(message, { nodes: node }));
    },
  };
}

const VALIDATION_RULES = [rejectUnknownOperations, ...specifiedRules];

function namedLimit(error: GraphQLError): GraphQLError {
  return error.message === TOO_MANY_COMPARISONS ? graphqlError(limitExceeded('comparisons', MAX_COMPARISONS)) : error;
}

/** Memory of a cached document, and that of each token with its share of the tree; measured. */
const DOCUMENT_BYTES = 1_000;
const TOKEN_BYTES = 300;

/** Parsed documents by their texts. Invalid ones are not kept: anybody can send new ones, and their errors hold stacks. */
function createDocumentCache(): LRUCache<string, DocumentNode> {
  return new LRUCache({
    maxSize: bytesFor('documents'),
    sizeCalculation: ({ tokenCount = 0 }, text) => DOCUMENT_BYTES + 2 * text.length + TOKEN_BYTES * tokenCount,
  });
}
