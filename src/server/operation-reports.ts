import { randomUUID } from 'node:crypto';
import type { ExecutionResult, OperationDefinitionNode } from 'graphql';
import { NO_USAGE } from '../caller/usage.ts';
import type { Usage } from '../caller/usage.ts';
import type { Events } from '../events.ts';
import type { Log } from '../log.ts';
import type { OperationSpan, Spans } from '../spans.ts';
import type { TraceContext } from '../trace-context.ts';
import { finishedError } from './error-answers.ts';

/** An operation that is on its way. */
export interface RunningOperation {
  /** In the log and, over HTTP, in the answer's `X-Request-Id`. */
  readonly id: string;
  readonly startedAtMs: number;
  /** Its trace is the one that the calls of the operation belong to. */
  readonly span: OperationSpan;
}

/** Tells the log, whoever counts and whoever traces of each operation, once. */
export interface OperationReports {
  /**
   * @param trace that its request belongs to.
   * @param id that of the HTTP request that it came with.
   */
  begin(trace: TraceContext | undefined, id?: string): RunningOperation;
  /** @param operation undefined where the document does not say which, or is none. */
  end(running: RunningOperation, operation: OperationDefinitionNode | undefined, result: ExecutionResult): void;
  /** There is no answer, since whoever asked is gone or it is begun again; only its trace says so. */
  givenUp(running: RunningOperation): void;
}

export interface OperationReportsOptions {
  readonly log: Log;
  readonly events?: Events | undefined;
  readonly spans: Spans;
}

/** A name is the client's own choice; nobody needs more of it to recognise it. */
const LONGEST_NAME = 64;

export function createOperationReports({ log, events, spans }: OperationReportsOptions): OperationReports {
  return {
    begin: (trace, id = randomUUID()) => ({ id, startedAtMs: performance.now(), span: spans.operation(trace) }),
    end({ id, startedAtMs, span }, operation, { errors, extensions }) {
      const [error] = errors ?? [];
      const type = operation?.operation ?? 'none';
      const outcome = error ? String(finishedError(error).extensions['code']) : 'OK';
      const name = operation?.name?.value.slice(0, LONGEST_NAME);
      span.end({ type, name, outcome });
      if (!events && !log.debug) return;
      const { upstreamCalls, servedWithoutCall, oldestAgeMs, staleReason } =
        (extensions?.['petql'] as Usage | undefined) ?? NO_USAGE;
      const event = {
        type,
        outcome,
        tookMs: Math.round((performance.now() - startedAtMs) * 1000) / 1000,
        upstreamCalls,
        servedWithoutCall,
        oldestAgeMs,
        staleReason,
      } as const;
      events?.operation(event);
      log.debug?.({ id, operation: name, ...event }, 'operation');
    },
    givenUp: ({ span }) => span.end({ type: 'none', outcome: 'ABORTED' }),
  };
}
