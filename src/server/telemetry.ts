import { randomUUID } from 'node:crypto';
import { NO_USAGE } from '../caller/usage.ts';
import type { Events } from '../events.ts';
import type { Log } from '../log.ts';
import { readTraceContext, traceIdOf } from '../tracing.ts';
import type { Spans } from '../tracing.ts';
import { clientOf } from './client-name.ts';
import { finishedError } from './errors.ts';
import type { RefusalLog } from './refusal-log.ts';
import type { HttpRequest } from './http/http-message.ts';
import type { RequestState } from './request-state.ts';

/** Where operations are reported to. */
interface Reports {
  readonly log: Log;
  readonly events: Events | undefined;
  readonly spans: Spans;
  readonly refusals: RefusalLog;
}

/** Reports each operation once: a log line, an event for the metrics and a span. */
export function createTelemetry({ log, events, spans, refusals }: Reports) {
  return {
    begin(request: HttpRequest): RequestState {
      const { traceparent, tracestate } = request.headers;
      // The preflight of a browser is no operation.
      const isOperation = request.method !== 'OPTIONS';
      const span = isOperation ? spans.operation(readTraceContext(traceparent, tracestate)) : undefined;
      return { request, id: requestId(request), startedAtMs: performance.now(), span };
    },
    /** Reports nothing for a request that is no operation. */
    end({ request, id, startedAtMs, span, operation, context, usage = NO_USAGE, result = {} }: RequestState): void {
      if (!span) return;
      const [error] = result.errors ?? [];
      const outcome = request.isAborted() ? 'ABORTED' : error ? String(finishedError(error).extensions['code']) : 'OK';
      const { type = 'none', name } = operation ?? {};
      span.end({ type, name, outcome });
      context?.recordUse(name, clientOf(request), outcome === 'RATE_LIMITED');
      if (error && context && outcome !== 'ABORTED') refusals.record(context, error);
      if (!events && !log.debug) return;

      const tookMs = Math.round((performance.now() - startedAtMs) * 1000) / 1000;
      const { upstreamCalls, savedCalls, oldestAgeMs, staleReason } = usage;
      const event = { type, outcome, tookMs, upstreamCalls, savedCalls, oldestAgeMs, staleReason } as const;
      events?.operation(event);
      log.debug?.({ id, trace_id: traceIdOf(span.trace), operation: name, ...event }, 'operation');
    },
  };
}

/** The client's own id of a request, so that its log and petql's agree. */
export function requestId({ headers }: HttpRequest): string {
  const given = headers['x-request-id'];
  return given !== undefined && SANE_ID.test(given) ? given : randomUUID();
}

const SANE_ID = /^[\w.:/+=~-]{1,128}$/;
