import { createHash } from 'node:crypto';
import type { GraphQLError } from 'graphql';
import type { Plugin } from 'graphql-yoga';
import { PetqlError, SettingError } from '../../common/errors.ts';
import type { ErrorCode } from '../../common/errors.ts';
import type { CheckedOptions } from '../../settings/settings.ts';
import { badRequest, graphqlError } from '../errors.ts';
import { parseWithin, validationErrors } from './document-limits.ts';
import { stateOf } from '../request-state.ts';
import type { ServerContext } from '../request-state.ts';

/** The texts of trusted documents by their ids. */
export type TrustedDocuments = ReadonlyMap<string, string>;

/**
 * Reads a manifest as build tools write it: an object of texts by their ids (GraphQL Code Generator, Relay), or Apollo's
 * list of operations. Each text is known by its id there, and by `sha256:` and its hash (GraphQL over HTTP, "Persisted Documents").
 *
 * @throws SettingError that names the first document that is invalid or exceeds a limit, or says why this is no manifest.
 */
export function readTrustedDocuments(settings: CheckedOptions): TrustedDocuments | undefined {
  const { trustedDocuments } = settings;
  if (!trustedDocuments) return undefined;
  const documents = new Map<string, string>();
  for (const [id, text] of manifestEntries(trustedDocuments)) {
    const hash = createHash('sha256').update(String(text)).digest('hex');
    const problem =
      problemOf(text, settings) ?? (isHashOf(id, hash) ? undefined : `its text has another hash, sha256:${hash}`);
    if (problem !== undefined) throw unusable(`the document ${JSON.stringify(id)}: ${problem}`);
    documents.set(id, text as string).set(`sha256:${hash}`, text as string);
  }
  return documents;
}

/** Looks up the document that a request names by its id. */
export function useTrustedDocuments(
  { requireTrustedDocuments }: CheckedOptions,
  trusted: TrustedDocuments | undefined,
): Plugin<ServerContext> {
  const texts = new Set<unknown>(trusted?.values());
  return {
    onParams({ params, setParams, context }) {
      const { query, documentId, extensions } = params as Params;
      if (query !== undefined && documentId !== undefined) throw badRequest(ONE_OF_BOTH, 422);
      if (query !== undefined) {
        const isRestricted = requireTrustedDocuments && !stateOf(context).request.inProcess;
        if (isRestricted && !texts.has(query)) throw rejected('PERSISTED_DOCUMENT_REQUIRED', ONLY_TRUSTED);
        return;
      }

      const hash = apolloHash(extensions);
      const id = documentId ?? hash;
      if (id === undefined) throw badRequest('Must provide query string.', 422);
      const text = trusted?.get(id) ?? trusted?.get(`sha256:${id}`);
      if (text === undefined) {
        // The manifest may be that of another app.
        const mayFallBack = hash !== undefined && !requireTrustedDocuments;
        throw rejected(
          'PERSISTED_DOCUMENT_NOT_FOUND',
          mayFallBack ? APOLLO_NOT_SUPPORTED : trusted ? UNKNOWN_ID : NO_IDS,
        );
      }
      setParams({ ...params, query: text });
    },
  };
}

const ONE_OF_BOTH = 'Expected a query or a documentId, got both.';
const ONLY_TRUSTED = 'Only persisted documents run here: send the documentId of one instead of a query.';

const UNKNOWN_ID =
  'There is no persisted document with this id here: the manifest of this client is needed, or a newer one.';
const NO_IDS = 'There are no persisted documents here: send the query instead of its id.';
/** By this message Apollo's clients learn to send texts instead of hashes (automatic persisted queries). */
const APOLLO_NOT_SUPPORTED = 'PersistedQueryNotSupported';

/** The parameters of a request, after their form was checked. */
interface Params {
  readonly query?: string;
  readonly documentId?: string;
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** The hash that Apollo's clients send in place of a document or beside it; an empty one is none. */
function apolloHash({ persistedQuery }: NonNullable<Params['extensions']> = {}): string | undefined {
  const { sha256Hash } = (persistedQuery ?? {}) as { sha256Hash?: unknown };
  if (typeof (sha256Hash ?? '') !== 'string') throw badRequest('persistedQuery.sha256Hash must be a string.', 422);
  return (sha256Hash as string | null | undefined) || undefined;
}

function rejected(code: ErrorCode, message: string): GraphQLError {
  return graphqlError(new PetqlError(code, message, { httpStatus: 422 }));
}

/** Returns the id and the text of each document. */
export function manifestEntries(manifest: object): [string, unknown][] {
  const { format, operations } = manifest as { format?: unknown; operations?: unknown };
  if (format !== 'apollo-persisted-query-manifest') return Object.entries(manifest);
  if (!Array.isArray(operations)) throw unusable('operations: expected a list');
  return (operations as { id?: unknown; body?: unknown }[]).map(({ id, body }) => [String(id), body]);
}

function problemOf(text: unknown, settings: CheckedOptions): string | undefined {
  if (typeof text !== 'string') return 'expected a text';
  try {
    return validationErrors(parseWithin(text, settings), settings)[0]?.message;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Ids may be anything else. */
function isHashOf(id: string, hash: string): boolean {
  return !id.startsWith('sha256:') || id === `sha256:${hash}`;
}

function unusable(problem: string): SettingError {
  return new SettingError('trustedDocuments', (name) => `${name}: ${problem}`);
}
