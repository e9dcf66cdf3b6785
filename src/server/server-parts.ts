import type { Callers } from '../caller/callers.ts';
import type { Events } from '../events.ts';
import type { CheckedOptions } from '../settings.ts';
import type { Spans } from '../tracing.ts';
import type { Health } from './http/health.ts';
import type { TrustedDocuments } from './trusted-documents.ts';

/** What the server is made of. */
export interface ServerParts {
  readonly settings: CheckedOptions;
  readonly callers: Callers;
  readonly health: () => Health;
  readonly trusted: TrustedDocuments | undefined;
  readonly events: Events | undefined;
  readonly spans: Spans;
}
