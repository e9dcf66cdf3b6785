import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { Hono } from 'hono';
import { gateway, POST } from './route.ts';

/** Every way to mount petql that the README names, each on another port. */
const origins = {
  'node:http': listen(createServer(gateway.handle)),
  Express: listen(createServer(express().use('/graphql', gateway.handle))),
  'Express behind a parser': listen(createServer(express().use(express.json(), gateway.handle))),
  Fastify: fastifyOrigin(fastify()),
  Hono: honoOrigin(new Hono()),
  'a Next.js route': listenWith(nextRoute),
};
for (const [name, origin] of Object.entries(origins)) process.stdout.write(`${name}=${await origin}\n`);
process.stdout.write('ready\n');

function fastifyOrigin(app: FastifyInstance): Promise<string> {
  app.all('/graphql*', ({ raw, body }, reply) => gateway.handle(Object.assign(raw, { body }), reply.hijack().raw));
  return app.listen({ port: 0, host: '127.0.0.1' });
}

function honoOrigin(app: Hono): Promise<string> {
  app.all('/graphql/*', ({ req }) => gateway.fetch(req.raw));
  return listenWith(app.fetch);
}

/** As Next.js calls it: with a context, and particular about the class of what comes back. */
async function nextRoute(request: Request): Promise<Response> {
  const handler: (request: Request, context: { params: Promise<object> }) => Promise<Response> = POST;
  const response = await handler(request, { params: Promise.resolve({}) });
  if (!(response instanceof Response)) throw new Error('No response is returned from the route handler');
  return response;
}

/** Next.js has the platform's Response. */
function listenWith(handler: (request: Request) => Promise<Response> | Response): Promise<string> {
  return listen(createServer(getRequestListener(handler, { overrideGlobalObjects: false })));
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
