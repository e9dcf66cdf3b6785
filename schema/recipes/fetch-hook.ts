import { useEffect, useState } from 'react';
import { read, send } from './fetch.ts';
import { LOST, noticeOf } from './petql.ts';
import type { PetqlResult } from './petql.ts';

interface Pets {
  readonly pets: readonly { readonly id: string; readonly name: string }[] | null;
}

interface Created {
  readonly createPet: {
    readonly pet: { readonly id: string } | null;
    readonly userErrors: readonly { readonly message: string }[];
  } | null;
}

const PETS = 'query Pets($status: PetStatus) { pets(status: $status) { id name } }';
const CREATE = `mutation Create($input: CreatePetInput!) {
  createPet(input: $input) { pet { id } userErrors { field message } }
}`;

export function usePets(status: string) {
  const [result, setResult] = useState<PetqlResult<Pets>>({});
  useEffect(() => {
    const leaving = new AbortController();
    read<Pets>({ query: PETS, variables: { status } }, setResult, leaving.signal).catch((error: unknown) => {
      if (!leaving.signal.aborted) setResult({ errors: [{ message: String(error) }] });
    });
    return () => leaving.abort();
  }, [status]);
  return { pets: result.data?.pets ?? undefined, notice: noticeOf(result) };
}

/** Adds a pet. Make one key for each pet with `newKey()`, and keep it while people submit the form again. */
export async function addPet(input: { readonly name: string; readonly categoryId: string }, idempotencyKey: string) {
  const variables = { input: { ...input, idempotencyKey } };
  const result = await send<Created>({ query: CREATE, variables }).catch(() => ({ data: null, errors: [LOST] }));
  return { created: result.data?.createPet ?? undefined, notice: noticeOf(result) };
}
