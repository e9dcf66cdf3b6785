import { randomUUID } from 'node:crypto';
import type { ExecutionResult, OperationDefinitionNode } from 'graphql';
import { NO_USAGE } from '../caller/usage.ts';
import type { Usage } from '../caller/usage.ts';
import type { Events } from '../events.ts';
import type { Log } from '../log.ts';
import { finishedError } from './error-answers.ts';

/** An operation that is on its way. */
export interface RunningOperation {
  /** In the log and, over HTTP, in the answer's `X-Request-Id`. */
  readonly id: string;
  readonly startedAtMs: number;
}

/** Tells the log and whoever counts of each operation, once. */
export interface OperationReports {
  /** @param id that of the HTTP request that it came with. */
  begin(id?: string): RunningOperation;
  /** @param operation undefined where the document does not say which, or is none. */
  end(running: RunningOperation, operation: OperationDefinitionNode | undefined, result: ExecutionResult): void;
}

export interface OperationReportsOptions {
  readonly log: Log;
  readonly events?: Events | undefined;
}

/** A name is the client's own choice; nobody needs more of it to recognise it. */
const LONGEST_NAME = 64;

export function createOperationReports({ log, events }: OperationReportsOptions): OperationReports {
  return {
    begin: (id = randomUUID()) => ({ id, startedAtMs: performance.now() }),
    end({ id, startedAtMs }, operation, { errors, extensions }) {
      if (!events && !log.debug) return;
      const { upstreamCalls, servedWithoutCall, oldestAgeMs, staleReason } =
        (extensions?.['petql'] as Usage | undefined) ?? NO_USAGE;
      const [error] = errors ?? [];
      const event = {
        type: operation?.operation ?? 'none',
        outcome: error ? String(finishedError(error).extensions['code']) : 'OK',
        tookMs: Math.round((performance.now() - startedAtMs) * 1000) / 1000,
        upstreamCalls,
        servedWithoutCall,
        oldestAgeMs,
        staleReason,
      } as const;
      events?.operation(event);
      log.debug?.({ id, operation: operation?.name?.value.slice(0, LONGEST_NAME), ...event }, 'operation');
    },
  };
}
