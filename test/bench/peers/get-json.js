import process from 'node:process';
import { Pool } from 'undici';

const { origin, pathname } = new URL(process.env.UPSTREAM_URL);
const pool = new Pool(origin, { connections: 64 });

/** One call of the REST service with the caller's own key. */
export async function getJson(path, authorization) {
  const { body } = await pool.request({ path: pathname + path, method: 'GET', headers: { authorization } });
  return body.json();
}
