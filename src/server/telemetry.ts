import { randomUUID } from 'node:crypto';
import { NO_USAGE } from '../caller/usage.ts';
import type { Events } from '../events.ts';
import type { Log } from '../log.ts';
import { readTraceContext } from '../tracing.ts';
import type { Spans } from '../tracing.ts';
import type { HttpRequest } from './http/http-message.ts';
import type { RequestState } from './request-state.ts';

/** Reports each operation once: a log line, an event for the metrics and a span. */
export function createTelemetry(log: Log, events: Events | undefined, spans: Spans) {
  return {
    begin(request: HttpRequest): RequestState {
      const { traceparent, tracestate } = request.headers;
      const span = spans.operation(readTraceContext(traceparent, tracestate));
      return { request, id: randomUUID(), startedAtMs: performance.now(), span };
    },
    /** @param code of the first error. */
    end({ request, id, startedAtMs, span, operation, result }: RequestState, code: string | undefined): void {
      const outcome = request.signal()?.aborted ? 'ABORTED' : (code ?? 'OK');
      const { type = 'none', name } = operation ?? {};
      span.end({ type, name, outcome });
      if (!events && !log.debug) return;
      const tookMs = Math.round((performance.now() - startedAtMs) * 1000) / 1000;
      const { upstreamCalls, savedCalls, oldestAgeMs, staleReason } = result?.extensions?.petql ?? NO_USAGE;
      const event = { type, outcome, tookMs, upstreamCalls, savedCalls, oldestAgeMs, staleReason } as const;
      events?.operation(event);
      log.debug?.({ id, operation: name, ...event }, 'operation');
    },
  };
}
