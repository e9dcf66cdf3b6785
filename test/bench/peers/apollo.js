import process from 'node:process';
import { RESTDataSource } from '@apollo/datasource-rest';
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import { resolversOver, typeDefs } from './type-defs.js';

/** Apollo Server with its data source for REST services, as its documentation has it. */
class PetApi extends RESTDataSource {
  baseURL = `${process.env.UPSTREAM_URL}/`;

  constructor(authorization) {
    super();
    this.authorization = authorization;
  }

  willSendRequest(_path, request) {
    request.headers.authorization = this.authorization;
  }

  read(path) {
    return this.get(path.slice(1));
  }
}

const server = new ApolloServer({ typeDefs, resolvers: resolversOver((path, { petApi }) => petApi.read(path)) });
await startStandaloneServer(server, {
  listen: { port: Number(process.env.PORT), host: '127.0.0.1' },
  context: async ({ req }) => ({ petApi: new PetApi(req.headers.authorization) }),
});
