import { ROOT_CONTEXT, SpanKind, SpanStatusCode, context, createTraceState, trace } from '@opentelemetry/api';
import type { Context, Span } from '@opentelemetry/api';
import type { OperationEvent, UpstreamCallEvent, WaitEvent } from './events.ts';
import type { TraceContext } from './trace-context.ts';

/**
 * Spans for OpenTelemetry, where the program around the gateway has set up its SDK; without one nothing is recorded and a
 * request's own trace context stays what it was. No span holds an API key, a document, a variable or an address.
 */
export interface Spans {
  /** Begins the span of an operation, below the span that it runs in or else below what its request says. */
  operation(request: TraceContext | undefined): OperationSpan;
  /** Tells of a wait that is just over. */
  waited(wait: RequestWait, parent: TraceContext | undefined): void;
  /** Begins the span of a call to the upstream; undefined where it is in nobody's trace. */
  call(operation: UpstreamCallEvent['operation'], parent: TraceContext | undefined): CallSpan | undefined;
}

/** How long a request waited for its turn in the plan. */
export interface RequestWait extends WaitEvent {
  /** Why no turn came: the code of its error, or why its answer is old. */
  readonly refused: string | undefined;
}

export interface OperationSpan {
  /** Where its waits and calls belong: its own place, or without an SDK that of its request. */
  readonly trace: TraceContext | undefined;
  end(result: OperationResult): void;
}

export interface OperationResult extends Pick<OperationEvent, 'outcome' | 'type'> {
  readonly name?: string | undefined;
}

export interface CallSpan {
  /** What the upstream is told, so that its own spans hang below this one. */
  readonly trace: TraceContext;
  /** @param result with the status of the response, if there was one, and what went wrong, if anything did. */
  end(result: { readonly status: number | undefined; readonly problem: string | undefined }): void;
}

const ROUTES: Readonly<Record<UpstreamCallEvent['operation'], readonly [method: string, template: string]>> = {
  listPets: ['GET', '/pets'],
  getPet: ['GET', '/pets/{petId}'],
  createPet: ['POST', '/pets'],
};

const UNTRACED: OperationSpan = { trace: undefined, end() {} };

/** The one place that knows OpenTelemetry. An SDK may be set up before or after. */
export function createSpans(): Spans {
  const tracer = trace.getTracer('petql');
  return {
    operation(request) {
      const here = context.active();
      const parent = request && !trace.getSpan(here) ? below(request, true, here) : here;
      const span = tracer.startSpan('GraphQL Operation', { kind: SpanKind.SERVER }, parent);
      const place = placeOf(span, parent) ?? request;
      // Without an SDK, nobody is told of it.
      if (!place && !span.isRecording()) return UNTRACED;
      return {
        trace: place,
        end({ type, name, outcome }) {
          if (type !== 'none') {
            span.updateName(name === undefined ? type : `${type} ${name}`);
            span.setAttribute('graphql.operation.type', type);
          }
          if (name !== undefined) span.setAttribute('graphql.operation.name', name);
          span.setAttribute('petql.outcome', outcome);
          endSpan(span, outcome === 'OK' ? undefined : outcome);
        },
      };
    },
    waited({ kind, waitedMs, refused }, parent) {
      if (!parent) return;
      // Which operation pays for a turn is known when it comes.
      const nowMs = Date.now();
      const attributes = {
        'petql.wait.kind': kind,
        ...(refused === undefined ? {} : { 'petql.wait.refused': refused }),
      };
      const options = { attributes, startTime: nowMs - waitedMs };
      tracer.startSpan('wait for the plan', options, below(parent, false)).end(nowMs);
    },
    call(operation, parent) {
      if (!parent) return undefined;
      const [method, template] = ROUTES[operation];
      const attributes = { 'http.request.method': method, 'url.template': template };
      const above = below(parent, false);
      const span = tracer.startSpan(`${method} ${template}`, { kind: SpanKind.CLIENT, attributes }, above);
      const own = placeOf(span, above);
      return (
        own && {
          trace: own,
          end({ status, problem }) {
            if (status !== undefined) span.setAttribute('http.response.status_code', status);
            endSpan(span, problem);
          },
        }
      );
    },
  };
}

function endSpan(span: Span, problem: string | undefined): void {
  if (problem !== undefined) {
    span.setAttribute('error.type', problem);
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

function below({ traceparent, tracestate }: TraceContext, isRemote: boolean, base: Context = ROOT_CONTEXT): Context {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  const state = tracestate === undefined ? {} : { traceState: createTraceState(tracestate) };
  return trace.setSpanContext(base, { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote, ...state });
}

/** Undefined for a span that stands for none: without an SDK it has no place of its own, only that of what is above. */
function placeOf(span: Span, above: Context): TraceContext | undefined {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  if (/^0*$/.test(spanId) || spanId === trace.getSpanContext(above)?.spanId) return undefined;
  const flags = (traceFlags % 0x100).toString(16).padStart(2, '0');
  return { traceparent: `00-${traceId}-${spanId}-${flags}`, tracestate: traceState?.serialize() || undefined };
}
