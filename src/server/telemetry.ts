import { randomUUID } from 'node:crypto';
import { systemClock } from '../common/clock.ts';
import { NO_USAGE } from '../common/usage.ts';
import type { Events } from '../common/events.ts';
import type { Log } from '../common/log.ts';
import { readTraceContext, traceIdOf } from '../common/tracing.ts';
import type { Spans } from '../common/tracing.ts';
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

/** Reports each operation once, from one value: its span, the counts of its API key, the metrics, a log line and its refusal. */
export function createTelemetry({ log, events, spans, refusals }: Reports) {
  return {
    begin(request: HttpRequest): RequestState {
      const { traceparent, tracestate } = request.headers;
      // The preflight of a browser is no operation.
      const isOperation = request.method !== 'OPTIONS';
      const span = isOperation ? spans.operation(readTraceContext(traceparent, tracestate)) : undefined;
      return { request, id: requestId(request), startedAtMs: systemClock.elapsed(), span };
    },
    /** Reports nothing for a request that is no operation. */
    end({ request, id, startedAtMs, span, operation, context, usage, result = {} }: RequestState): void {
      if (!span) return;
      const [error] = result.errors ?? [];
      const outcome = request.isAborted() ? 'ABORTED' : error ? String(finishedError(error).extensions['code']) : 'OK';
      const { type = 'none', name } = operation ?? {};
      const tookMs = Math.round((systemClock.elapsed() - startedAtMs) * 1000) / 1000;
      const { upstreamCalls, savedCalls, oldestAgeMs, staleReason } = usage ?? context?.usage ?? NO_USAGE;
      const logged = { type, outcome, tookMs, upstreamCalls, savedCalls, oldestAgeMs, staleReason } as const;
      const ended = { ...logged, name, client: clientOf(request), savings: context?.savings ?? {} };

      span.end(ended);
      context?.record(ended);
      events?.operation(ended);
      log.debug?.({ id, trace_id: traceIdOf(span.trace), operation: name, ...logged }, 'operation');
      if (error && context && outcome !== 'ABORTED') refusals.record(context, error);
    },
  };
}

/** The client's own id of a request, so that its log and petql's agree. */
export function requestId({ headers }: HttpRequest): string {
  const given = headers['x-request-id'];
  return given !== undefined && SANE_ID.test(given) ? given : randomUUID();
}

const SANE_ID = /^[\w.:/+=~-]{1,128}$/;
