import {
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  context,
  createContextKey,
  createTraceState,
  isSpanContextValid,
  trace,
} from '@opentelemetry/api';
import type { Context, Span } from '@opentelemetry/api';
import type { OperationEvent, UpstreamCallEvent } from './events.ts';

/** The place of an operation in a trace. */
export type TraceContext = Context;

/** Longer values need not be passed on (W3C Trace Context, section 3.3.1.5), and only header characters may be. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** Later versions may add to the end of the first one (W3C Trace Context, section 4.3). There is no version ff. */
const TRACEPARENT =
  /^(?:00(?=.{53}$)|(?!00|ff)[0-9a-f]{2}(?=.{53}(?:-|$)))-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/;

/** Reads the headers of W3C Trace Context. Malformed ones are undefined, and not passed on. */
export function readTraceContext(
  traceparent: string | null | undefined,
  tracestate: string | null | undefined,
): TraceContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  const traceState = tracestate && TRACESTATE.test(tracestate) ? createTraceState(tracestate) : undefined;
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  if (!isSpanContextValid(parent)) return undefined;
  return trace.setSpanContext(ROOT_CONTEXT, traceState ? { ...parent, traceState } : parent);
}

/** Returns the headers of a call in this trace. Without an SDK they are those of the request. */
export function traceHeaders(inTrace: TraceContext): Record<string, string> {
  const span = trace.getSpanContext(inTrace);
  if (!span || !isSpanContextValid(span)) return {};

  const flags = (span.traceFlags % 0x100).toString(16).padStart(2, '0');
  const tracestate = span.traceState?.serialize();
  return { traceparent: `00-${span.traceId}-${span.spanId}-${flags}`, ...(tracestate && { tracestate }) };
}

/** Returns the id of a trace; undefined outside of any trace. */
export function traceIdOf(inTrace: TraceContext): string | undefined {
  const span = trace.getSpanContext(inTrace);
  return span && isSpanContextValid(span) ? span.traceId : undefined;
}

export interface OperationSpan {
  /** The parent of the operation's calls. */
  readonly trace: TraceContext;
  readonly end: (operation: OperationEvent) => void;
}

interface CallSpan {
  /** The parent of the upstream's own spans. */
  readonly trace: TraceContext;
  /** Sends the call. What traces undici too adds no span, and no second `traceparent`, which would end the trace. */
  readonly send: <Answer>(send: () => Answer) => Answer;
  /** @param problem the `error.type`; undefined for a success. */
  readonly end: (status: number | undefined, problem: string | undefined) => void;
}

export interface Spans {
  /** Starts the span of an operation: a child of the active span, or else of the request's trace context. */
  readonly operation: (request: TraceContext | undefined) => OperationSpan;
  /** Starts the span of an upstream call; undefined where the call belongs to no trace. */
  readonly call: (operation: UpstreamCallEvent['operation'], parent: TraceContext | undefined) => CallSpan | undefined;
}

const ROUTES: Readonly<Record<UpstreamCallEvent['operation'], readonly [method: string, template: string]>> = {
  listPets: ['GET', '/pets'],
  getPet: ['GET', '/pets/{petId}'],
  createPet: ['POST', '/pets'],
};

/** By which instrumentations know that a call has its span: the key of `suppressTracing` in @opentelemetry/core. */
const IS_SUPPRESSED = createContextKey('OpenTelemetry SDK Context Key SUPPRESS_TRACING');

/**
 * Creates spans for OpenTelemetry, where the program around the gateway has set up its SDK, before or after. Without an SDK nothing
 * is recorded, and the trace context of a request is passed on as it is. No span holds an API key, a document or an address.
 *
 * @param isRecording false for spans that no SDK gets.
 */
export function createSpans(isRecording = true): Spans {
  const tracer = (isRecording ? trace : new ProxyTracerProvider()).getTracer('petql');
  return {
    operation(request) {
      const active = context.active();
      const parent = trace.getSpan(active) ? active : (request ?? active);
      if (!isRecording || !hasSdk()) return { trace: parent, end() {} };

      const span = tracer.startSpan('GraphQL Operation', { kind: SpanKind.SERVER }, parent);
      return { trace: trace.setSpan(parent, span), end: (operation) => endOperation(span, operation) };
    },

    call(operation, parent) {
      if (!parent) return undefined;
      const [method, template] = ROUTES[operation];
      const attributes = { 'http.request.method': method, 'url.template': template };
      const span = tracer.startSpan(`${method} ${template}`, { kind: SpanKind.CLIENT, attributes }, parent);
      return {
        trace: trace.setSpan(parent, span),
        send: (send) => context.with(context.active().setValue(IS_SUPPRESSED, true), send),
        end(status, problem) {
          if (status !== undefined) span.setAttribute('http.response.status_code', status);
          endSpan(span, problem);
        },
      };
    },
  };
}

/** Whether anybody takes spans: an operation costs less without them. */
function hasSdk(): boolean {
  const provider = trace.getTracerProvider();
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer('petql') !== undefined;
}

function endOperation(span: Span, { type, name, outcome }: OperationEvent): void {
  if (type !== 'none') {
    // The client's name of the operation would make as many names of spans as clients like.
    span.updateName(type);
    span.setAttribute('graphql.operation.type', type);
  }
  if (name !== undefined) span.setAttribute('graphql.operation.name', name);
  span.setAttribute('petql.outcome', outcome);
  endSpan(span, outcome === 'OK' ? undefined : outcome);
}

function endSpan(span: Span, problem: string | undefined): void {
  if (problem !== undefined) {
    span.setAttribute('error.type', problem);
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}
