import { FIELDS, FIELD_NAMES } from './contract.ts';
import type { FieldName } from './contract.ts';

/**
 * Returns a pet as the pet API sends it, with each field of the contract: in a test of one wrong field nothing else is wrong.
 *
 * @param changed JSON of other values; undefined leaves a field out.
 */
export function wirePet(changed: Readonly<Partial<Record<FieldName, string | undefined>>> = {}): string {
  const values = FIELD_NAMES.map((name) => [name, name in changed ? changed[name] : valueOf(name)] as const);
  const members = values.flatMap(([name, json]) => (json === undefined ? [] : [`"${name}":${json}`]));
  return `{${members.join(',')}}`;
}

function valueOf(name: FieldName): string {
  const field = FIELDS[name];
  switch (field.kind) {
    case 'int64':
      return '1';
    case 'text':
      return '"Ada"';
    case 'enum':
      return JSON.stringify(field.values[0]);
  }
}
