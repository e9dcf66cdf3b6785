import type { BenchProcess } from './bench-process.ts';
import type { Contestant } from './contestants.ts';
import { load } from './load.ts';
import { graphqlRequest, restRequest } from './request-text.ts';
import type { Workload } from './workloads.ts';

/** One contestant in one round. */
export interface Sample {
  readonly operationsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicrosPerOperation: number;
  readonly residentMiB: number;
  readonly upstreamCallsPerOperation: number;
}

export interface MeasureOptions {
  readonly contestant: Contestant;
  readonly process: BenchProcess;
  readonly upstream: BenchProcess;
  readonly workload: Workload;
  readonly connections: number;
  readonly durationMs: number;
}

export async function measure(options: MeasureOptions): Promise<Sample> {
  const { process: measured, upstream, contestant, workload, connections, durationMs } = options;
  const requests = Array.from({ length: connections }, (_, connection) =>
    requestOf(contestant, workload, workload.uncached ? `caller-${connection}` : 'caller'),
  );
  const before = await usage(measured, upstream);
  const result = await load({
    port: measured.port,
    connections,
    durationMs,
    request: (connection) => requests[connection] as Buffer,
  });
  const after = await usage(measured, upstream);
  const { operations, seconds, latenciesMs } = result;
  return {
    operationsPerSecond: operations / seconds,
    p50Ms: latenciesMs[Math.floor(operations * 0.5)] ?? 0,
    p99Ms: latenciesMs[Math.floor(operations * 0.99)] ?? 0,
    cpuMicrosPerOperation: (after.cpuMicros - before.cpuMicros) / operations,
    residentMiB: after.residentBytes / 2 ** 20,
    upstreamCallsPerOperation: (after.calls - before.calls) / operations,
  };
}

export function requestOf({ speaks }: Contestant, workload: Workload, key: string): Buffer {
  return speaks === 'rest' ? restRequest(workload.restPath ?? '', key) : graphqlRequest(workload, key);
}

async function usage(measured: BenchProcess, upstream: BenchProcess) {
  const { cpuMicros, residentBytes } = await measured.ask<{ cpuMicros: number; residentBytes: number }>('usage');
  const { calls } = await upstream.ask<{ calls: number }>('calls');
  return { cpuMicros, residentBytes, calls };
}
