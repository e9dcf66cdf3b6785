import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import cors from '@fastify/cors';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import fastify from 'fastify';
import type { FastifyInstance } from 'fastify';
import { Hono } from 'hono';
import { cors as honoCors } from 'hono/cors';
import { createGateway } from 'petql';

/** The page that the frameworks themselves allow. */
const PAGE = 'https://app.example';

const refused: string[] = [];
const log = {
  info() {},
  warn: (details: object, message: string) => void refused.push(`${message} ${JSON.stringify(details)}`),
  error() {},
};
const gateway = createGateway({ petApiUrl: process.env['PET_API_URL'] ?? '', log });

/** Every way to mount petql that the README names, each on another port. */
const origins = {
  'node:http': listen(createServer(gateway.handle)),
  Express: listen(createServer(express().use('/graphql', gateway.handle))),
  'Express behind a parser': listen(createServer(express().use(express.json(), gateway.handle))),
  'Express at the root': expressOrigin(express()),
  Fastify: fastifyOrigin(fastify()),
  Hono: honoOrigin(new Hono()),
  'Hono behind middleware': honoMiddlewareOrigin(new Hono()),
  'Hono that cuts the path off': honoMountOrigin(new Hono()),
};
for (const [name, origin] of Object.entries(origins)) process.stdout.write(`${name}=${await origin}\n`);
process.stdout.write('ready\n');

function expressOrigin(app: express.Express): Promise<string> {
  app.use(gateway.handle);
  app.get('/', (_request, response) => void response.send('home'));
  app.get('/log', (_request, response) => void response.json(refused));
  app.post('/form', express.text(), ({ body }, response) => void response.send(`got ${body}`));
  return listen(createServer(app));
}

async function fastifyOrigin(app: FastifyInstance): Promise<string> {
  await app.register(cors, { origin: [PAGE] });
  app.addHook(
    'onRequest',
    async (_request, reply) => void reply.header('x-app', 'site').header('set-cookie', ['a=1', 'b=2']),
  );
  app.all('/graphql*', ({ raw, body }, reply) => {
    for (const [name, value = ''] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
    gateway.handle(Object.assign(raw, { body }), reply.hijack().raw);
  });
  return app.listen({ port: 0, host: '127.0.0.1' });
}

function honoOrigin(app: Hono): Promise<string> {
  app.all('/graphql/*', ({ req }) => gateway.fetch(req.raw));
  return listenWith(app.fetch);
}

function honoMiddlewareOrigin(app: Hono): Promise<string> {
  app.use(honoCors({ origin: PAGE }));
  app.use(async ({ req }, next) => {
    if (req.header('x-read-before')) await req.text();
    await next();
  });
  app.all('/graphql/*', ({ req }) => gateway.fetch(req.raw));
  return listenWith(app.fetch);
}

function honoMountOrigin(app: Hono): Promise<string> {
  app.mount('/graphql', gateway.fetch);
  return listenWith(app.fetch);
}

/** As Next.js it has the platform's Response. */
function listenWith(handler: (request: Request) => Promise<Response> | Response): Promise<string> {
  return listen(createServer(getRequestListener(handler, { overrideGlobalObjects: false })));
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
