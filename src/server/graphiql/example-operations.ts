/** What GraphiQL's first tabs hold, so that whoever explores sees each way of asking. */
export const EXAMPLE_OPERATIONS: readonly { readonly query: string; readonly variables?: string }[] = [
  {
    query: `# Animals that wait for a home.
query ListPets($limit: Int) {
  pets(status: AVAILABLE, limit: $limit) {
    id
    name
    categoryId
    status
  }
}
`,
    variables: '{ "limit": 4 }',
  },
  {
    query: `# One animal by its id, and several in the order asked for: null stands where there is none.
query FindPets($id: ID!, $ids: [ID!]!) {
  pet(id: $id) {
    id
    name
    status
  }
  petsById(ids: $ids) {
    id
    name
  }
}
`,
    variables: '{ "id": "1", "ids": ["3", "2", "404404"] }',
  },
  {
    query: `# Several filters in one operation.
query CompareStatuses {
  available: pets(status: AVAILABLE, limit: 3) {
    id
    name
  }
  pending: pets(status: PENDING, limit: 3) {
    id
    name
  }
  sold: pets(status: SOLD, limit: 3) {
    id
    name
  }
}
`,
  },
  {
    query: `# Adds an animal. What is wrong with the input stands in userErrors.
mutation CreatePet($input: CreatePetInput!) {
  createPet(input: $input) {
    pet {
      id
      name
      status
    }
    userErrors {
      code
      message
    }
  }
}
`,
    variables: '{ "input": { "name": "Momo", "categoryId": "3", "status": "AVAILABLE" } }',
  },
];
