/** One tab of GraphiQL. */
export interface ExampleOperation {
  readonly query: string;
  readonly variables?: string;
  /** Beside the API key. */
  readonly headers?: Readonly<Record<string, string>>;
}

const THIRTY_PETS = Array.from({ length: 30 }, (_, index) => `  pet${index + 1}: pet(id: ${index + 1}) { ...Card }\n`);

/** The first tabs: each shows one thing that petql does. */
export const EXAMPLE_OPERATIONS: readonly ExampleOperation[] = [
  {
    query: `# Pets that wait for a home.
query ListPets($limit: Int) {
  pets(status: AVAILABLE, limit: $limit) {
    id name categoryId status
  }
}
`,
    variables: '{ "limit": 4 }',
  },
  {
    query: `# Thirty reads. The line under the result
# shows how few upstream calls they cost.
query ThirtyPets {
${THIRTY_PETS.join('')}}

fragment Card on Pet { name status }
`,
  },
  {
    query: `# Several filters. Run twice in a second:
# the second run costs no call.
query CompareStatuses {
  available: pets(status: AVAILABLE, limit: 3) { id name }
  pending: pets(status: PENDING, limit: 3) { id name }
  sold: pets(status: SOLD, limit: 3) { id name }
}
`,
  },
  {
    query: `# Adds a pet. Run it again: with the same
# idempotencyKey nothing is added twice.
mutation CreatePet($input: CreatePetInput!) {
  createPet(input: $input) {
    pet { id name status }
    userErrors { field code message }
  }
}
`,
    variables: `{
  "input": { "name": "Momo", "categoryId": "3", "status": "AVAILABLE", "idempotencyKey": "momo-1" }
}`,
  },
  {
    query: `# What is left of the API key's plan.
# This costs no call.
query Quota {
  rateLimit {
    plan queued pausedUntil
    windows { window limit used remaining resetAt }
  }
}
`,
  },
  {
    query: `# Nothing runs, due to the header
# petql-dry-run. The result tells what
# it would cost at most.
query DryRun {
  pets(status: AVAILABLE, limit: 100) { id }
  petsById(ids: ["1", "2", "404404"]) { id name }
}
`,
    headers: { 'petql-dry-run': '1' },
  },
];
