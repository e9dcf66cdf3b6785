import { connection } from 'next/server';
import { petql } from '../lib/gateway';

export default async function Page() {
  await connection();
  const { data, errors } = await petql().execute({ document: '{ pets(status: SOLD, limit: 1) { name } }' });
  return <p>{JSON.stringify(data ?? errors)}</p>;
}
