import './node-version.ts';

export type { Clock } from './clock.ts';
export type { Consumer, Consumers, ConsumersOf } from './caller/consumers.ts';
export type { KeyReport } from './caller/key-report.ts';
export type { Usage } from './caller/usage.ts';
export type { ErrorCode } from './errors.ts';
export { createGateway } from './gateway.ts';
export type { Gateway } from './gateway.ts';
export type { GatewayOptions } from './settings/settings.ts';
export type { PlanText, ServerKey } from './settings/setting-shapes.ts';
export type { Log } from './log.ts';
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
