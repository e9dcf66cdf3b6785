import './common/node-version.ts';
import type { Gateway } from './server/gateway-api.ts';
import { openGateway } from './gateway.ts';
import type { GatewayOptions } from './settings/gateway-options.ts';
import { checkedOptions } from './settings/settings.ts';

// Each of these imports types of this list alone, so that no other file of petql is in a program's types.
export type { Clock } from './common/clock.ts';
export type { Consumer, Consumers, ConsumersOf, KeyReport } from './caller/key-report.ts';
export type { ErrorCode } from './common/errors.ts';
export type { Gateway } from './server/gateway-api.ts';
export type { Log } from './common/log.ts';
export type { Fetch } from './server/http/fetch.ts';
export type {
  DryRun,
  Execute,
  Operation,
  OperationDocument,
  OperationError,
  OperationResult,
  ResultExtensions,
  TypedDocument,
} from './server/operation.ts';
export type { CallDispatcher, GatewayOptions, PlanText, ServerKey } from './settings/gateway-options.ts';
export type { StaleReason, Usage } from './common/usage.ts';

/**
 * Creates a gateway. Those of one process for the same pet API, key secret and state file share the count of each API key and the
 * idempotency keys, whichever evaluation of this module makes them, and nothing else.
 *
 * @throws TypeError that names every wrong option, or the file or documents that cannot be used. Nothing stays open then.
 */
export function createGateway(options: GatewayOptions): Gateway {
  return openGateway(checkedOptions(options));
}
