import { connection } from 'next/server';
import { Suspense } from 'react';
import { petql } from '../lib/gateway';

interface Data {
  readonly pets: readonly { readonly name: string }[] | null;
}

async function Pets() {
  await connection(); // of next/server
  const { data, errors } = await petql().execute<Data>({ document: '{ pets(status: SOLD, limit: 1) { name } }' });
  return <p>{data?.pets?.map(({ name }) => name).join(', ') ?? errors?.[0]?.message}</p>;
}

export default function Page() {
  return (
    <Suspense fallback="…">
      <Pets />
    </Suspense>
  );
}
