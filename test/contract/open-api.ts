import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { AnySchema, ErrorObject } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';
import { int64FromBigInt } from '../../src/pets/int64.ts';
import { parseLosslessJson } from '../../src/common/lossless-json.ts';
import type { OperationName } from '../support/pet-api/contract.ts';

/** An operation of the OpenAPI file. */
export interface Operation {
  readonly method: string;
  /** Below the base address, such as `/pets/{petId}`. */
  readonly path: string;
  /** From when on it may be removed. */
  readonly sunsetAtMs: number | undefined;
  /** What in an answer is not as the file has it: its status, a header, its content type, its body. */
  readonly problems: (answer: Answer) => string[];
}

/** An HTTP answer with the whole of its body. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Reads schema/pet-api.openapi.yaml. */
export function readOpenApi(): Record<OperationName, Operation> {
  const text = readFileSync(new URL('../../schema/pet-api.openapi.yaml', import.meta.url), 'utf8');
  const document = inlined(parse(text)) as OpenApiDocument;
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, Operation] => [
      operation.operationId,
      {
        method: method.toUpperCase(),
        path,
        sunsetAtMs: operation['x-sunset'] === undefined ? undefined : Date.parse(operation['x-sunset']),
        problems: (answer) => problemsOf(answer, operation.responses),
      },
    ]),
  );
  return Object.fromEntries(operations) as Record<OperationName, Operation>;
}

interface OpenApiDocument {
  readonly paths: Record<string, Record<string, OperationObject>>;
}

interface OperationObject {
  readonly operationId: string;
  readonly 'x-sunset'?: string;
  readonly responses: Record<string, ResponseObject>;
}

interface ResponseObject {
  readonly headers: Record<string, { readonly required?: boolean; readonly schema: AnySchema }>;
  readonly content: Record<string, { readonly schema: AnySchema }>;
}

/** Returns the document with what its references stand for; none of them leads back to itself. */
function inlined(document: unknown): unknown {
  const target = (reference: string) =>
    reference
      .replace(/^#\//, '')
      .split('/')
      .reduce((node: any, step) => node[step], document);
  return JSON.parse(JSON.stringify(document), (_key, node) => resolve(node));

  function resolve(node: any): unknown {
    return node?.$ref === undefined
      ? node
      : JSON.parse(JSON.stringify(target(node.$ref)), (_key, inner) => resolve(inner));
  }
}

function problemsOf({ status, headers, text }: Answer, responses: OperationObject['responses']): string[] {
  const response = responses[status];
  if (!response) {
    return [
      `status ${status}: expected one of ${Object.keys(responses).join(', ')}; the body is ${text.slice(0, 200)}`,
    ];
  }
  return [...headerProblems(headers, response), ...bodyProblems(headers.get('content-type'), text, response)];
}

function headerProblems(headers: Headers, response: ResponseObject): string[] {
  return Object.entries(response.headers).flatMap(([name, { required, schema }]) => {
    const value = headers.get(name);
    if (value === null) return required ? [`${name}: expected this header`] : [];
    return schemaProblems(name, schema, isInteger(schema) && /^-?\d{1,15}$/.test(value) ? Number(value) : value);
  });
}

function bodyProblems(contentType: string | null, text: string, { content }: ResponseObject): string[] {
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
  const schema = content[mediaType]?.schema;
  if (schema === undefined) {
    return [`Content-Type: expected ${Object.keys(content).join(', ')}, got ${String(contentType)}`];
  }
  try {
    return schemaProblems('body', schema, withoutBigInts(parseLosslessJson(text)));
  } catch {
    return [`body: expected JSON, got ${text.slice(0, 200)}`];
  }
}

const ajv = new Ajv2020({ allErrors: true });
addFormats.default(ajv, ['int64']);

function schemaProblems(name: string, schema: AnySchema, value: unknown): string[] {
  const validate = ajv.compile(schema);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message }: ErrorObject) => `${name}${instancePath.replaceAll('/', '.')}: ${message}`,
  );
}

function isInteger(schema: AnySchema): boolean {
  return typeof schema === 'object' && schema['type'] === 'integer';
}

/** Ajv knows no bigint: an int64 becomes the number next to it, and what is out of its range no number at all. */
function withoutBigInts(value: unknown): unknown {
  if (typeof value === 'bigint') return int64FromBigInt(value) === undefined ? String(value) : Number(value);
  if (Array.isArray(value)) return value.map(withoutBigInts);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutBigInts(item)]));
}
