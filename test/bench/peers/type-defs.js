/** petql's reads, for the peers that serve the same GraphQL. */
export const typeDefs = `
  enum PetStatus { AVAILABLE PENDING SOLD }
  type Pet { id: ID! name: String! categoryId: ID! status: PetStatus }
  type Query {
    pets(status: PetStatus, limit: Int = 20): [Pet!]
    pet(id: ID!): Pet
    petsById(ids: [ID!]!): [Pet]
  }
`;

/** As a first version is written: a call a field, straight from the REST service. */
export function resolversOver(get) {
  return {
    Pet: { status: ({ status }) => status?.toUpperCase() },
    Query: {
      pets: (_root, { status, limit }, context) =>
        get(`/pets?limit=${limit}${status ? `&status=${status.toLowerCase()}` : ''}`, context),
      pet: (_root, { id }, context) => get(`/pets/${id}`, context),
      petsById: (_root, { ids }, context) => ids.map((id) => get(`/pets/${id}`, context)),
    },
  };
}
