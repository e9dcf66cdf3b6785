/** One tab of GraphiQL. */
export interface ExampleOperation {
  readonly query: string;
  readonly variables?: string;
  /** Beside the API key. */
  readonly headers?: Readonly<Record<string, string>>;
}

const THIRTY_PETS = Array.from(
  { length: 30 },
  (_, index) => `  pet${index + 1}: pet(id: "${index + 1}") { ...Card }\n`,
);

/** The first tabs: each shows one thing that petql does. Lines of 48 characters fit beside the result on a laptop. */
export const EXAMPLE_OPERATIONS: readonly ExampleOperation[] = [
  {
    query: `# Pets that wait for a home.
query ListPets {
  pets(status: AVAILABLE, limit: 4) {
    id name categoryId status
  }
}
`,
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
    query: `# Four lists cost four calls. The pets by id
# are in them, and cost none. Run it twice in
# a second: then nothing costs a call.
query CompareStatuses {
  all: pets(limit: 3) {
    name
  }
  available: pets(status: AVAILABLE, limit: 3) {
    name
  }
  pending: pets(status: PENDING, limit: 3) {
    name
  }
  sold: pets(status: SOLD, limit: 3) {
    name
  }
  petsById(ids: ["1", "2", "3", "4", "5"]) {
    name status
  }
}
`,
  },
  {
    query: `# Adds the pet in the tab Variables. Run it
# again: with the same idempotencyKey nothing
# is added twice.
mutation CreatePet($input: CreatePetInput!) {
  createPet(input: $input) {
    pet { id name status }
    userErrors { field code message }
  }
}
`,
    variables: `{
  "input": {
    "name": "Momo",
    "categoryId": "3",
    "status": "AVAILABLE",
    "idempotencyKey": "NEW_KEY"
  }
}`,
  },
  {
    query: `# What is left of the API key's plan.
# This costs no call.
query Quota {
  rateLimit {
    plan queued pausedUntil
    windows {
      window limit used remaining resetAt
    }
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
  petsById(ids: ["1", "2", "404404"]) {
    id name
  }
}
`,
    headers: { 'petql-dry-run': '1' },
  },
];
