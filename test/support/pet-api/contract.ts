/*
 * The contract of the pet API, by hand from pet-api.md. The double serves it and all suites draw from it; test/contract compares
 * it with petql and with schema/pet-api.openapi.yaml.
 */

export const STATUSES = ['available', 'pending', 'sold'] as const;
export type Status = (typeof STATUSES)[number];

type FieldForm =
  | { readonly kind: 'int64'; readonly isAssigned?: true }
  | { readonly kind: 'text' }
  /** A pet may be without a value of an enum. `type` is its name. */
  | { readonly kind: 'enum'; readonly type: string; readonly values: readonly string[] };

/** The fields of a pet. What the pet API assigns itself is none of a new pet. */
export const FIELDS = {
  id: { kind: 'int64', isAssigned: true },
  name: { kind: 'text' },
  categoryId: { kind: 'int64' },
  status: { kind: 'enum', type: 'PetStatus', values: STATUSES },
} as const satisfies Readonly<Record<string, FieldForm>>;

export type FieldName = keyof typeof FIELDS;
type EnumName = { [Name in FieldName]: (typeof FIELDS)[Name] extends { kind: 'enum' } ? Name : never }[FieldName];
type ValueOf<Name extends EnumName> = (typeof FIELDS)[Name]['values'][number];

export type Pet = { readonly [Name in Exclude<FieldName, EnumName>]: string } & {
  readonly [Name in EnumName]: ValueOf<Name> | undefined;
};
export type NewPet = { readonly [Name in Exclude<FieldName, EnumName | 'id'>]: string } & {
  readonly [Name in EnumName]?: ValueOf<Name> | undefined;
};

export const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[];
export const NEW_PET_FIELD_NAMES = FIELD_NAMES.filter((name) => !isAssigned(FIELDS[name])) as readonly (keyof NewPet)[];
export const ENUM_NAMES = FIELD_NAMES.filter((name): name is EnumName => FIELDS[name].kind === 'enum');

/** The fields by which lists are filtered. */
export const FILTERS = ['status'] as const satisfies readonly EnumName[];
export type Filter = { readonly [Name in (typeof FILTERS)[number]]?: ValueOf<Name> | undefined };

/** `all`, or the values of the filters, such as `sold`. */
export type ListName = Exclude<Values<typeof FILTERS>, ''> | 'all';
type Values<Names> = Names extends readonly [infer First extends EnumName, ...infer Rest]
  ? Joined<ValueOf<First>, Values<Rest>> | Values<Rest>
  : '';
type Joined<First extends string, Rest extends string> = Rest extends '' ? First : `${First}-${Rest}`;

const EACH_FILTER = FILTERS.reduce<readonly Filter[]>(
  (filters, name) =>
    filters.flatMap((filter) => [filter, ...FIELDS[name].values.map((value) => ({ ...filter, [name]: value }))]),
  [{}],
);
const FILTER_OF = new Map(EACH_FILTER.map((filter) => [listOf(filter), filter]));
export const LISTS: readonly ListName[] = [...FILTER_OF.keys()];
/** Most pets that a list shows. */
export const MAX_LISTED = 100;
export const DEFAULT_LISTED = 20;

export function listOf(filter: Filter): ListName {
  const values = FILTERS.flatMap((name) => filter[name] ?? []);
  return (values.join('-') || 'all') as ListName;
}

export function filterOf(list: ListName): Filter {
  return FILTER_OF.get(list) ?? {};
}

export function isListed(pet: Filter, list: ListName): boolean {
  const filter = filterOf(list);
  return FILTERS.every((name) => filter[name] === undefined || filter[name] === pet[name]);
}

/** Whether every pet of the list is in the other one too, whatever the store has. */
export function isWithin(list: ListName, other: ListName): boolean {
  const wide = filterOf(other);
  return FILTERS.every((name) => wide[name] === undefined || wide[name] === filterOf(list)[name]);
}

/** Returns a value of each enum for the pet at this position of a store, so that all combinations come in turn. */
export function valuesInTurn(index: number): Pick<Pet, EnumName> {
  let rest = index;
  const values = ENUM_NAMES.map((name) => {
    const { length } = FIELDS[name].values;
    const value = FIELDS[name].values[rest % length];
    rest = Math.floor(rest / length);
    return [name, value];
  });
  return Object.fromEntries(values);
}

interface OperationForm {
  readonly kind: string;
  readonly method: string;
  readonly path: string;
  /** Names of query parameters. */
  readonly parameters: readonly string[];
  /** The status of a success, and whether its response has a body. */
  readonly success: number;
  readonly hasBody: boolean;
  /** Whether a success changes the store. */
  readonly isWrite: boolean;
}

export const OPERATIONS = {
  listPets: {
    kind: 'list',
    method: 'GET',
    path: '/pets',
    parameters: ['limit', ...FILTERS],
    success: 200,
    hasBody: true,
    isWrite: false,
  },
  createPet: {
    kind: 'create',
    method: 'POST',
    path: '/pets',
    parameters: [],
    success: 201,
    hasBody: true,
    isWrite: true,
  },
  getPet: {
    kind: 'get',
    method: 'GET',
    path: '/pets/{petId}',
    parameters: [],
    success: 200,
    hasBody: true,
    isWrite: false,
  },
} as const satisfies Readonly<Record<string, OperationForm>>;

export type OperationName = keyof typeof OPERATIONS;
export type WriteName = {
  [Name in OperationName]: (typeof OPERATIONS)[Name]['isWrite'] extends true ? Name : never;
}[OperationName];
export const OPERATION_NAMES = Object.keys(OPERATIONS) as readonly OperationName[];

export interface Route {
  readonly operation: OperationName;
  /** Undefined where the path names no pet. */
  readonly id: string | undefined;
  readonly search: URLSearchParams;
}

const ROUTES = OPERATION_NAMES.map((operation) => {
  const form: OperationForm = OPERATIONS[operation];
  return { operation, ...form, pattern: new RegExp(`^${form.path.replace('{petId}', String.raw`(-?\d+)`)}$`) };
});

/** Whether the pet API has anything at this path, which may have a query. */
export function isPath(path: string): boolean {
  const [bare = ''] = path.split('?');
  return ROUTES.some(({ pattern }) => pattern.test(bare));
}

/** @param path below `/v1`, with its query. */
export function routeOf(method: string, path: string): Route | undefined {
  const [bare = '', query] = path.split('?');
  const search = new URLSearchParams(query);
  const isKnown = (parameters: readonly string[]) => [...search.keys()].every((name) => parameters.includes(name));
  const route = ROUTES.find((each) => each.method === method && each.pattern.test(bare) && isKnown(each.parameters));
  return route && { operation: route.operation, id: route.pattern.exec(bare)?.[1], search };
}

function isAssigned(field: FieldForm): boolean {
  return field.kind === 'int64' && field.isAssigned === true;
}
