import { createServer } from 'node:http';
import process from 'node:process';

/** What Node itself can do: one constant body, as long as petql's answer, whatever was asked. */
let body = Buffer.from('{}');
process.on('message', (message) => {
  if (message.kind !== 'body') return;
  body = Buffer.from(message.body);
  process.send?.({ kind: 'body' });
});

createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}).listen(Number(process.env.PORT), '127.0.0.1');
