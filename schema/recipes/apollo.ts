import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql, makeVar } from '@apollo/client';
import type { Observable, ReactiveVar, TypedDocumentNode } from '@apollo/client';
import { CombinedGraphQLErrors } from '@apollo/client/errors';
import { useMutation, useQuery, useReactiveVar } from '@apollo/client/react';
import { OperationTypeNode } from 'graphql';
import { concat, mergeMap, of, tap, timer } from 'rxjs';
import { LOST, MAX_TRIES, noticeOf, retryDelay } from './petql.ts';

declare module '@apollo/client' {
  namespace ApolloClient {
    namespace DeclareDefaultOptions {
      interface WatchQuery {
        errorPolicy: 'all';
      }
      interface Query {
        errorPolicy: 'all';
      }
      interface Mutate {
        errorPolicy: 'all';
      }
    }
  }
}

/** Sends queries again while they are limited. Components show what is there, and when the last one is gone, it stops. */
const retryLink = new ApolloLink((operation, forward) => {
  if (operation.operationType !== OperationTypeNode.QUERY) return forward(operation);
  const send = (tries: number): Observable<ApolloLink.Result> =>
    forward(operation).pipe(
      mergeMap((result) => {
        const waitMs = retryDelay(result.errors);
        if (waitMs === undefined || tries === MAX_TRIES) return of(result);
        return concat(of(result), timer(waitMs).pipe(mergeMap(() => send(tries + 1))));
      }),
    );
  return send(1);
});

/** The notice of each query, by its name and variables: `extensions` reach links only. */
const notices = new Map<string, ReactiveVar<string | undefined>>();

function noticeVar(name = '', variables: object = {}): ReactiveVar<string | undefined> {
  const key = name + JSON.stringify(variables);
  const known = notices.get(key) ?? makeVar<string | undefined>(undefined);
  notices.set(key, known);
  return known;
}

const noticeLink = new ApolloLink((operation, forward) =>
  forward(operation).pipe(
    tap((result) => {
      noticeVar(operation.operationName, operation.variables)(noticeOf(result));
    }),
  ),
);

const httpLink = new HttpLink({
  uri: 'http://127.0.0.1:4000/graphql',
  headers: { authorization: 'Bearer demo-free' },
});

export const client = new ApolloClient({
  link: ApolloLink.from([retryLink, noticeLink, httpLink]),
  // rateLimit has no id: its windows are replaced.
  cache: new InMemoryCache({ typePolicies: { Query: { fields: { rateLimit: { merge: true } } } } }),
  defaultOptions: {
    // For hooks. petql caches too, so asking again is cheap.
    watchQuery: { errorPolicy: 'all', fetchPolicy: 'cache-and-network' },
    query: { errorPolicy: 'all' },
    mutate: { errorPolicy: 'all' },
  },
});

interface Pets {
  readonly pets: readonly { readonly id: string; readonly name: string }[] | null;
}

interface Created {
  readonly createPet: {
    readonly pet: { readonly id: string } | null;
    readonly userErrors: readonly { readonly message: string }[];
  } | null;
}

const PETS: TypedDocumentNode<Pets, { status: string }> = gql`
  query Pets($status: PetStatus) {
    pets(status: $status) {
      id
      name
    }
  }
`;
const CREATE: TypedDocumentNode<Created, { input: { name: string; categoryId: string; idempotencyKey: string } }> = gql`
  mutation Create($input: CreatePetInput!) {
    createPet(input: $input) {
      pet {
        id
      }
      userErrors {
        field
        message
      }
    }
  }
`;

/** The pets, and beside them the notice of this very list. */
export function usePets(status: string) {
  const { data, error } = useQuery(PETS, { variables: { status } });
  const notice = useReactiveVar(noticeVar('Pets', { status }));
  return { pets: data?.pets ?? undefined, notice: isNetworkError(error) ? noticeOf({ errors: [error] }) : notice };
}

/** Adds a pet, once for each call. Make one key for each pet with `newKey()`, and keep it while people submit the form again. */
export function useAddPet() {
  const [add, { data, error }] = useMutation(CREATE);
  const errors = CombinedGraphQLErrors.is(error) ? error.errors : error && [LOST];
  return { add, created: data?.createPet ?? undefined, notice: noticeOf({ errors }) };
}

function isNetworkError(error: Error | undefined): error is Error {
  return error !== undefined && !CombinedGraphQLErrors.is(error);
}
