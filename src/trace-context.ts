/** Where an operation stands in somebody's trace (W3C Trace Context), as its headers say it. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate: string | undefined;
}

/** Longer ones need not be passed on (section 3.3.1.5), and only what a header may hold goes to the service. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** @returns undefined where the headers are no trace context of the version that there is; it is then not passed on. */
export function readTraceContext(
  traceparent: string | null | undefined,
  tracestate: string | null | undefined,
): TraceContext | undefined {
  const [, traceId = '', parentId = ''] =
    /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(traceparent ?? '') ?? [];
  if (!traceparent || /^0*$/.test(traceId) || /^0*$/.test(parentId)) return undefined;
  return { traceparent, tracestate: tracestate && TRACESTATE.test(tracestate) ? tracestate : undefined };
}
