import { createHash } from 'node:crypto';
import { GraphQLError, parse, validate } from 'graphql';
import type { GraphQLSchema } from 'graphql';
import { PetqlError } from '../errors.ts';

/** The documents that clients were built with, known by their ids: persisted documents, in GraphQL over HTTP's words. */
export interface TrustedDocuments {
  /** The text with this id; undefined where there is none. */
  find(id: string): string | undefined;
  /** Whether this text is one of them, to the letter. */
  has(text: string): boolean;
}

/** What stands in a request where its document is looked for, as it was sent. */
export interface DocumentParams {
  readonly query?: unknown;
  readonly documentId?: unknown;
  readonly extensions?: unknown;
}

/**
 * Reads a manifest as build tools write it: an object of texts by their ids (GraphQL Code Generator, Relay), or Apollo's
 * list of operations. Each text is known by its id there, and by `sha256:` and its hash (GraphQL over HTTP, "Persisted Documents").
 *
 * @throws Error that names the first document that is not of this schema, or what is no manifest.
 */
export function readTrustedDocuments(manifest: unknown, schema: GraphQLSchema): TrustedDocuments {
  const byId = new Map<string, string>();
  const texts = new Set<string>();
  for (const [id, text] of entriesOf(manifest)) {
    if (typeof text !== 'string') throw new Error(`the document ${JSON.stringify(id)}: expected a text`);
    const [error] = errorsOf(text, schema);
    if (error) throw new Error(`the document ${JSON.stringify(id)}: ${error.message}`);
    const hashed = hashId(text);
    if (id.startsWith('sha256:') && id !== hashed) {
      throw new Error(`the document ${JSON.stringify(id)}: its text has another hash, ${hashed}`);
    }
    byId.set(id, text).set(hashed, text);
    texts.add(text);
  }
  return { find: (id) => byId.get(id), has: (text) => texts.has(text) };
}

/**
 * The text of the document that a request asks for; undefined where it has none at all, which is for others to say.
 *
 * @param required whether no other than the trusted ones may run.
 * @throws PetqlError where it may not run, or its id says nothing here.
 */
export function requestedDocument(
  params: DocumentParams,
  trusted: TrustedDocuments | undefined,
  required: boolean,
): string | undefined {
  const { query } = params;
  const hasText = query !== undefined && query !== null;
  const id = params.documentId ?? (hasText ? undefined : apolloId(params.extensions));
  if (id !== undefined && id !== null) {
    if (hasText) throw badRequest('Expected a query or a documentId, got both.');
    if (typeof id !== 'string') throw badRequest('documentId: expected a string.');
    const text = trusted?.find(id) ?? (/^[0-9a-f]{64}$/.test(id) ? trusted?.find(`sha256:${id}`) : undefined);
    if (text !== undefined) return text;
    throw new PetqlError(
      'PERSISTED_DOCUMENT_NOT_FOUND',
      trusted
        ? 'There is no persisted document with this id here: the manifest of this client is needed, or a newer one.'
        : 'There are no persisted documents here: send the query instead of its id.',
      { httpStatus: 400 },
    );
  }
  if (!hasText) return undefined;
  if (required && !(typeof query === 'string' && trusted?.has(query) === true)) {
    throw new PetqlError(
      'PERSISTED_DOCUMENT_REQUIRED',
      'Only persisted documents run here: send the documentId of one instead of a query.',
      { httpStatus: 400 },
    );
  }
  return query as string;
}

function entriesOf(manifest: unknown): [string, unknown][] {
  if (typeof manifest !== 'object' || manifest === null || Array.isArray(manifest)) {
    throw new Error('expected an object of documents by their ids');
  }
  const { format, operations } = manifest as { format?: unknown; operations?: unknown };
  if (format !== 'apollo-persisted-query-manifest') return Object.entries(manifest);
  if (!Array.isArray(operations)) throw new Error('operations: expected a list');
  return (operations as { id?: unknown; body?: unknown }[]).map(({ id, body }) => [String(id), body]);
}

function errorsOf(text: string, schema: GraphQLSchema): readonly GraphQLError[] {
  try {
    return validate(schema, parse(text));
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    throw error;
  }
}

function hashId(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** Where Apollo's clients put it. */
function apolloId(extensions: unknown): unknown {
  const { persistedQuery } = (extensions ?? {}) as { persistedQuery?: { sha256Hash?: unknown } | null };
  return persistedQuery?.sha256Hash;
}

function badRequest(message: string): PetqlError {
  return new PetqlError('BAD_USER_INPUT', message, { httpStatus: 400 });
}
