import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SpanKind, context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { createGateway } from 'petql';

/** Prints what an upstream gets of a trace, and the client spans, where undici is instrumented as usual. */
const exporter = new InMemorySpanExporter();
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }));
const instrumentation = new UndiciInstrumentation();
instrumentation.setTracerProvider(trace.getTracerProvider());

const received: string[] = [];
const upstream = createServer(({ rawHeaders }, response) => {
  received.push(...rawHeaders.filter((_, index) => rawHeaders[index - 1]?.toLowerCase() === 'traceparent'));
  response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
}).listen(0, '127.0.0.1');
await once(upstream, 'listening');

const gateway = createGateway({ petApiUrl: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1` });
await trace.getTracer('app').startActiveSpan('page', async (page) => {
  await gateway.execute({ document: '{ pets { id } }', apiKey: 'a-key' });
  page.end();
});
// What others send is still theirs to trace.
await fetch(`http://127.0.0.1:${(upstream.address() as AddressInfo).port}/`);

const clients = exporter.getFinishedSpans().filter(({ kind }) => kind === SpanKind.CLIENT);
const sent = clients.map((span) => `00-${span.spanContext().traceId}-${span.spanContext().spanId}-01`);
process.stdout.write(`${JSON.stringify({ names: clients.map(({ name }) => name), sent, received })}\n`);
await gateway.close();
upstream.close();
