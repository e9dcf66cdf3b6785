import { createServer } from 'node:http';
import process from 'node:process';
import Bottleneck from 'bottleneck';
import { Pool } from 'undici';

/** The REST call, handed on as it is; with JOBS=1, each call is a job of the caller's Bottleneck. */
const { origin } = new URL(process.env.UPSTREAM_URL);
const pool = new Pool(origin, { connections: 64 });
const limiters = new Map();

createServer((request, response) => {
  const answer = process.env.JOBS
    ? limiterOf(request.headers.authorization).schedule(() => call(request))
    : call(request);
  answer.then(
    ({ status, body }) => {
      response
        .writeHead(status, { 'content-type': 'application/json', 'content-length': body.byteLength })
        .end(Buffer.from(body));
    },
    () => response.writeHead(502).end(),
  );
}).listen(Number(process.env.PORT), '127.0.0.1');

async function call({ url, headers: { authorization } }) {
  const { statusCode, body } = await pool.request({ path: url, method: 'GET', headers: { authorization } });
  return { status: statusCode, body: await body.arrayBuffer() };
}

function limiterOf(key) {
  const known = limiters.get(key) ?? new Bottleneck({ maxConcurrent: 50 });
  limiters.set(key, known);
  return known;
}
