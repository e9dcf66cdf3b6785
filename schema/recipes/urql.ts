import { Client, cacheExchange, fetchExchange, gql, useMutation, useQuery } from 'urql';
import type { CombinedError, Exchange, Operation, TypedDocumentNode } from 'urql';
import { makeSubject, map, merge, pipe, tap } from 'wonka';
import { LOST, MAX_TRIES, noticeOf, retryDelay } from './petql.ts';
import type { PetqlError } from './petql.ts';

/** Sends queries again while they are limited, and stops when their last component is gone. */
export const retryExchange: Exchange =
  ({ forward }) =>
  (operations) => {
    const again = makeSubject<Operation>();
    const timers = new Map<number, ReturnType<typeof setTimeout>>();
    const tries = new Map<number, number>();
    const stop = ({ key }: Operation) => {
      clearTimeout(timers.get(key));
      timers.delete(key);
      tries.delete(key);
    };

    return pipe(
      merge([pipe(operations, tap(stop)), again.source]),
      forward,
      map((result) => {
        const { operation, error } = result;
        const { key } = operation;
        const waitMs = operation.kind === 'query' ? retryDelay(error?.graphQLErrors) : undefined;
        const sent = (tries.get(key) ?? 0) + 1;
        if (waitMs === undefined || sent === MAX_TRIES) {
          tries.delete(key);
          return result;
        }

        tries.set(key, sent);
        timers.set(
          key,
          setTimeout(() => again.next(operation), waitMs),
        );
        // Components show what is there, and promises wait.
        return { ...result, stale: true };
      }),
    );
  };

export const client = new Client({
  url: 'http://127.0.0.1:4000/graphql',
  exchanges: [cacheExchange, retryExchange, fetchExchange],
  fetchOptions: { headers: { authorization: 'Bearer demo-free' } },
  preferGetMethod: false,
  // petql caches too, so asking again is cheap; the document cache alone keeps an error for good.
  requestPolicy: 'cache-and-network',
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

export function usePets(status: string) {
  const [{ data, error, extensions }] = useQuery({ query: PETS, variables: { status } });
  return { pets: data?.pets ?? undefined, notice: noticeOf({ errors: errorsOf(error), extensions }) };
}

/** Adds a pet, once for each call. Make one key for each pet with `newKey()`, and keep it while people submit the form again. */
export function useAddPet() {
  const [{ data, error }, add] = useMutation(CREATE);
  return {
    add,
    created: data?.createPet ?? undefined,
    notice: noticeOf({ errors: error?.networkError ? [LOST] : errorsOf(error) }),
  };
}

function errorsOf(error: CombinedError | undefined): readonly PetqlError[] {
  return error?.networkError ? [error.networkError] : (error?.graphQLErrors ?? []);
}
