export type { Clock } from './clock.ts';
export type { ErrorCode } from './errors.ts';
export { createGateway } from './gateway.ts';
export type { Gateway } from './gateway.ts';
export type { GatewayOptions, PlanText, ServerKey } from './gateway-options.ts';
export type { Log } from './log.ts';
export type { AssumedPlan } from './plan.ts';
export type { Execute, Operation, OperationDocument, TypedDocument } from './server/operation.ts';
