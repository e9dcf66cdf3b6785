/** One operation that is asked again and again. */
export interface Workload {
  readonly name: string;
  /** What stands at the top of its table. */
  readonly title: string;
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
  /** The REST call that tells the same, where it is one: what the pass-throughs are asked for. */
  readonly restPath?: string;
  /** Each operation costs petql a call: of another caller for each connection, and none may use an older answer. */
  readonly uncached?: true;
}

const LIST = 'query ($limit: Int!) { pets(limit: $limit) { id name categoryId status } }';
const IDS = Array.from({ length: 20 }, (_, index) => String(index * 4 + 1));

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'list-20',
    title: 'a list of 20, from memory',
    query: LIST,
    variables: { limit: 20 },
    restPath: '/pets?limit=20',
  },
  {
    name: 'one',
    title: 'one animal, from memory',
    query: 'query ($id: ID!) { pet(id: $id) { id name categoryId status } }',
    variables: { id: '42' },
    restPath: '/pets/42',
  },
  {
    name: 'list-100',
    title: 'a list of 100, from memory',
    query: LIST,
    variables: { limit: 100 },
    restPath: '/pets?limit=100',
  },
  {
    name: 'filters',
    title: 'four filters in one operation, from memory',
    query: `{
      all: pets { id name status }
      available: pets(status: AVAILABLE) { ...shown }
      pending: pets(status: PENDING) { ...shown }
      sold: pets(status: SOLD) { ...shown }
    }
    fragment shown on Pet { id name status }`,
  },
  {
    name: 'ids',
    title: '20 ids in one operation, from memory',
    query: 'query ($ids: [ID!]!) { petsById(ids: $ids) { id name categoryId status } }',
    variables: { ids: IDS },
  },
  {
    name: 'list-call',
    title: 'a list of 20, one upstream call each',
    query: LIST,
    variables: { limit: 20 },
    restPath: '/pets?limit=20',
    uncached: true,
  },
  {
    name: 'one-call',
    title: 'one animal, one upstream call each',
    query: 'query ($id: ID!) { pet(id: $id) { id name categoryId status } }',
    variables: { id: '42' },
    restPath: '/pets/42',
    uncached: true,
  },
];
