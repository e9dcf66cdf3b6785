import { createHash } from 'node:crypto';
import { PetqlError } from '../errors.ts';
import type { CheckedOptions } from '../settings.ts';
import { malformed } from './errors.ts';
import type { Params } from './http/request-params.ts';
import { parseWithin, validationErrors } from './limits/document-limits.ts';

/**
 * Returns a function that finds the text of a request: its query, or the document that it names by an id.
 *
 * @throws TypeError that names the first trusted document that is invalid or exceeds a limit, or says why there is no manifest.
 */
export function createTrustedDocuments(settings: CheckedOptions) {
  const trusted = readManifest(settings);
  const texts = new Set<unknown>(trusted.values());
  return ({ query, documentId, extensions }: Params, isInProcess: boolean): unknown => {
    // Apollo's clients have it in an extension.
    const apollo = (extensions as { persistedQuery?: { sha256Hash?: unknown } } | undefined)?.persistedQuery;
    const id = documentId ?? (query === undefined ? apollo?.sha256Hash : undefined) ?? undefined;
    if (id === undefined) {
      if (!settings.requireTrustedDocuments || isInProcess || texts.has(query)) return query;
      throw new PetqlError('PERSISTED_DOCUMENT_REQUIRED', ONLY_TRUSTED, { httpStatus: 400 });
    }
    if (typeof id !== 'string') throw malformed('documentId: expected a string.');
    if (query !== undefined && query !== null) throw malformed('Expected a query or a documentId, got both.');
    const text = trusted.get(id) ?? trusted.get(`sha256:${id}`);
    if (text !== undefined) return text;
    throw new PetqlError('PERSISTED_DOCUMENT_NOT_FOUND', NOT_FOUND, { httpStatus: 400 });
  };
}

const ONLY_TRUSTED = 'Only persisted documents run here: send the documentId of one instead of a query.';
const NOT_FOUND = 'No trusted document has this id: start petql with the manifest of this client, or send a query.';

/**
 * Reads a manifest as build tools write it: an object of texts by their ids (GraphQL Code Generator, Relay), or Apollo's
 * list of operations. Each text is known by its id there, and by `sha256:` and its hash (GraphQL over HTTP, "Persisted Documents").
 */
function readManifest(settings: CheckedOptions): ReadonlyMap<string, string> {
  const documents = new Map<string, string>();
  for (const [id, text] of entriesOf(settings.trustedDocuments ?? {})) {
    const hash = createHash('sha256').update(String(text)).digest('hex');
    const isOther = id.startsWith('sha256:') && id !== `sha256:${hash}`;
    const problem = isOther ? `its text has another hash, sha256:${hash}` : problemOf(text, settings);
    if (problem !== undefined) throw unusable(`the document ${JSON.stringify(id)}: ${problem}`);
    documents.set(id, text as string).set(`sha256:${hash}`, text as string);
  }
  return documents;
}

function entriesOf(manifest: object): [string, unknown][] {
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

function unusable(problem: string): TypeError {
  return new TypeError(`createGateway: trustedDocuments: ${problem}`);
}
