import { readFileSync, readdirSync } from 'node:fs';
import { PerformanceObserver, constants, monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapSpaceStatistics } from 'node:v8';
import type { FigureName } from './figure-names.ts';

/** One value of a figure. */
export interface ProcessSample {
  readonly name: FigureName;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What is told of the process itself, under the names that prom-client's own collection has; that one never ends. */
export interface ProcessFigures {
  /** How things stand; what is told of the event loop is of the time since the last reading. */
  read(): readonly ProcessSample[];
  /** Ends what it watches all the time: the event loop and the garbage collector. */
  close(): void;
}

/** @param onCollection hears of each garbage collection, in seconds. */
export function createProcessFigures(onCollection: (kind: string, tookS: number) => void): ProcessFigures {
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const collections = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail, duration } = entry as PerformanceEntry & { readonly detail: { readonly kind: number } };
      onCollection(COLLECTIONS[detail.kind] ?? 'other', duration / 1_000);
    }
  });
  collections.observe({ entryTypes: ['gc'] });
  let lagS = 0;

  return {
    read() {
      const askedAtMs = performance.now();
      // Told the next time, since nobody waits for it.
      setImmediate(() => {
        lagS = (performance.now() - askedAtMs) / 1_000;
      });
      return [...ofProcess(), ...ofLinux(), ...ofEventLoop(), ...ofNode()];
    },
    close() {
      delay.disable();
      collections.disconnect();
    },
  };

  function ofEventLoop(): ProcessSample[] {
    const { count } = delay;
    const ofDelay = { min: delay.min, max: delay.max, mean: delay.mean, stddev: delay.stddev };
    const percentiles = { p50: delay.percentile(50), p90: delay.percentile(90), p99: delay.percentile(99) };
    delay.reset();
    return [
      { name: 'nodejs_eventloop_lag_seconds', value: lagS },
      ...Object.entries({ ...ofDelay, ...percentiles }).map(([part, tookNs]) => ({
        name: `nodejs_eventloop_lag_${part}_seconds` as FigureName,
        // Of no time at all, there is no shortest and no mean.
        value: count > 0 ? tookNs / 1e9 : 0,
      })),
    ];
  }
}

const COLLECTIONS: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

function ofProcess(): ProcessSample[] {
  const { user, system } = process.cpuUsage();
  return [
    { name: 'process_cpu_user_seconds_total', value: user / 1e6 },
    { name: 'process_cpu_system_seconds_total', value: system / 1e6 },
    { name: 'process_cpu_seconds_total', value: (user + system) / 1e6 },
    { name: 'process_start_time_seconds', value: STARTED_AT_S },
  ];
}

/** In seconds since the epoch. */
const STARTED_AT_S = Math.round(Date.now() / 1_000 - process.uptime());

/** What only Linux tells of. */
function ofLinux(): ProcessSample[] {
  const samples: ProcessSample[] = [];
  const add = (name: FigureName, value: number) => {
    if (Number.isFinite(value)) samples.push({ name, value });
  };
  const status = textOf('/proc/self/status');
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * 1_024;
  add('process_virtual_memory_bytes', bytes('VmSize'));
  add('process_heap_bytes', bytes('VmData'));
  add('process_max_fds', Number(/^Max open files +(\d+)/m.exec(textOf('/proc/self/limits'))?.[1]));
  try {
    // Without the one that reads them.
    add('process_open_fds', readdirSync('/proc/self/fd').length - 1);
  } catch {
    // There is none to read.
  }
  return samples;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function ofNode(): ProcessSample[] {
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage();
  const { _getActiveHandles: handles, _getActiveRequests: requests } = process as unknown as ActiveOf;
  const [major = '', minor = '', patch = ''] = process.versions.node.split('.');
  return [
    { name: 'process_resident_memory_bytes', value: rss },
    { name: 'nodejs_heap_size_total_bytes', value: heapTotal },
    { name: 'nodejs_heap_size_used_bytes', value: heapUsed },
    { name: 'nodejs_external_memory_bytes', value: external },
    ...getHeapSpaceStatistics().flatMap((heap): ProcessSample[] => {
      const labels = { space: heap.space_name.replace(/_space$/, '') };
      return [
        { name: 'nodejs_heap_space_size_total_bytes', labels, value: heap.space_size },
        { name: 'nodejs_heap_space_size_used_bytes', labels, value: heap.space_used_size },
        { name: 'nodejs_heap_space_size_available_bytes', labels, value: heap.space_available_size },
      ];
    }),
    ...active('nodejs_active_resources', process.getActiveResourcesInfo()),
    ...active('nodejs_active_handles', handles?.().map(classOf) ?? []),
    ...active('nodejs_active_requests', requests?.().map(classOf) ?? []),
    { name: 'nodejs_version_info', labels: { version: process.version, major, minor, patch }, value: 1 },
  ];
}

/** Node's own, though it documents neither. */
interface ActiveOf {
  readonly _getActiveHandles?: () => object[];
  readonly _getActiveRequests?: () => object[];
}

function classOf(thing: object): string {
  return thing.constructor?.name ?? 'Object';
}

function active(
  name: 'nodejs_active_handles' | 'nodejs_active_requests' | 'nodejs_active_resources',
  types: readonly string[],
): ProcessSample[] {
  const counts = new Map<string, number>();
  for (const type of types) counts.set(type, (counts.get(type) ?? 0) + 1);
  return [
    ...[...counts].map(([type, value]) => ({ name, labels: { type }, value })),
    { name: `${name}_total`, value: types.length },
  ];
}
