import { createServer } from 'node:http';
import process from 'node:process';
import { Pool } from 'undici';

/**
 * A pass-through, without GraphQL: node:http and undici alone. It makes the call that the variables of a request name, and sends
 * the body of its response on as it is.
 */
const { origin, pathname } = new URL(process.env.PET_API_URL);
const pool = new Pool(origin, { connections: 64 });

createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => void passOn(request, Buffer.concat(chunks).toString(), response));
}).listen(0, '127.0.0.1');

async function passOn({ headers: { authorization } }, operation, response) {
  const { variables } = JSON.parse(operation);
  const { statusCode, body } = await pool.request(callOf(variables, authorization));
  const text = await body.text();
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  response.writeHead(statusCode === 201 ? 200 : statusCode, headers).end(text);
}

function callOf({ name, id, limit, status }, authorization) {
  if (name) {
    const headers = { authorization, 'content-type': 'application/json' };
    return { method: 'POST', path: `${pathname}/pets`, headers, body: JSON.stringify({ name, categoryId: 1 }) };
  }
  const filter = status ? `&status=${status.toLowerCase()}` : '';
  return {
    method: 'GET',
    path: pathname + (id ? `/pets/${id}` : `/pets?limit=${limit}${filter}`),
    headers: { authorization },
  };
}
