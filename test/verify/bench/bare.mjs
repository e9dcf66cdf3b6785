import { createServer } from 'node:http';
import process from 'node:process';

/** What Node itself can do: it sends the constant BODY, whatever the request is. */
const body = Buffer.from(process.env.BODY);
createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}).listen(0, '127.0.0.1');
