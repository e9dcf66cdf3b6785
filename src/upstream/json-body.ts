import { cutText } from '../common/cut-text.ts';
import { parseLosslessJson } from '../common/lossless-json.ts';

/** A body breaks the contract. The message says which field, and what was expected: never a part of the body. */
export class ContractBreach extends Error {
  /** Whether another server wrote the body, such as a proxy. */
  readonly isForeign: boolean;

  constructor(problem: string, isForeign = false) {
    super(problem);
    this.isForeign = isForeign;
  }
}

/** The Error body of the upstream (pet-api.md, "Error"). */
export interface WireError {
  readonly code: string;
  readonly message: string;
}

/** A shorter API key is a word that messages may have. */
const MIN_KEY_LENGTH = 8;

/**
 * Returns the Error body, or undefined for any other body: a proxy's page, an empty response.
 *
 * @param apiKey is left out where the message repeats it.
 */
export function decodeError(body: Buffer, apiKey: string): (WireError & { readonly status: unknown }) | undefined {
  try {
    const { code, message, status } = fieldsOf(readJson(body));
    if (typeof code !== 'string' || typeof message !== 'string') return undefined;
    // Cut to a readable length: clients see this text.
    const withoutKey = (text: string) => (apiKey.length < MIN_KEY_LENGTH ? text : text.replaceAll(apiKey, '…'));
    return { code: cutText(withoutKey(code), 100), message: cutText(withoutKey(message), 1_000), status };
  } catch {
    return undefined;
  }
}

/** It leaves out a byte order mark, which some servers send (RFC 8259, section 8.1). */
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** @throws ContractBreach */
export function readJson(body: Buffer): unknown {
  const text = readText(body);
  try {
    return parseLosslessJson(text);
  } catch {
    throw new ContractBreach('the body: expected JSON', true);
  }
}

function readText(body: Buffer): string {
  try {
    return UTF8.decode(body);
  } catch {
    const isGzip = body[0] === 0x1f && body[1] === 0x8b;
    const got = isGzip ? ', got gzip, which no Content-Encoding names' : '';
    throw new ContractBreach(`the body: expected UTF-8${got}`, true);
  }
}

export type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns the members of a body that is a JSON object.
 *
 * @throws ContractBreach
 */
export function fieldsOf(json: unknown): Fields {
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Fields;
  throw new ContractBreach('the body: expected an object', true);
}
