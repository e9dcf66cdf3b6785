export type FigureName = keyof typeof FIGURES;

export interface Figure {
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** Whether it only grows. */
  readonly counts?: true;
}

/** All that there may be, with the words that prom-client has for them. */
export const FIGURES = {
  process_cpu_user_seconds_total: { help: 'Total user CPU time spent in seconds.', counts: true },
  process_cpu_system_seconds_total: { help: 'Total system CPU time spent in seconds.', counts: true },
  process_cpu_seconds_total: { help: 'Total user and system CPU time spent in seconds.', counts: true },
  process_start_time_seconds: { help: 'Start time of the process since unix epoch in seconds.' },
  process_resident_memory_bytes: { help: 'Resident memory size in bytes.' },
  process_virtual_memory_bytes: { help: 'Virtual memory size in bytes.' },
  process_heap_bytes: { help: 'Process heap size in bytes.' },
  process_open_fds: { help: 'Number of open file descriptors.' },
  process_max_fds: { help: 'Maximum number of open file descriptors.' },
  nodejs_eventloop_lag_seconds: { help: 'Lag of event loop in seconds.' },
  nodejs_eventloop_lag_min_seconds: { help: 'The minimum recorded event loop delay.' },
  nodejs_eventloop_lag_max_seconds: { help: 'The maximum recorded event loop delay.' },
  nodejs_eventloop_lag_mean_seconds: { help: 'The mean of the recorded event loop delays.' },
  nodejs_eventloop_lag_stddev_seconds: { help: 'The standard deviation of the recorded event loop delays.' },
  nodejs_eventloop_lag_p50_seconds: { help: 'The 50th percentile of the recorded event loop delays.' },
  nodejs_eventloop_lag_p90_seconds: { help: 'The 90th percentile of the recorded event loop delays.' },
  nodejs_eventloop_lag_p99_seconds: { help: 'The 99th percentile of the recorded event loop delays.' },
  nodejs_active_resources: {
    help: 'Number of active resources that are currently keeping the event loop alive, grouped by async resource type.',
    labelNames: ['type'],
  },
  nodejs_active_resources_total: { help: 'Total number of active resources.' },
  nodejs_active_handles: {
    help: 'Number of active libuv handles grouped by handle type. Every handle type is C++ class name.',
    labelNames: ['type'],
  },
  nodejs_active_handles_total: { help: 'Total number of active handles.' },
  nodejs_active_requests: {
    help: 'Number of active libuv requests grouped by request type. Every request type is C++ class name.',
    labelNames: ['type'],
  },
  nodejs_active_requests_total: { help: 'Total number of active requests.' },
  nodejs_heap_size_total_bytes: { help: 'Process heap size from Node.js in bytes.' },
  nodejs_heap_size_used_bytes: { help: 'Process heap size used from Node.js in bytes.' },
  nodejs_external_memory_bytes: { help: 'Node.js external memory size in bytes.' },
  nodejs_heap_space_size_total_bytes: {
    help: 'Process heap space size total from Node.js in bytes.',
    labelNames: ['space'],
  },
  nodejs_heap_space_size_used_bytes: {
    help: 'Process heap space size used from Node.js in bytes.',
    labelNames: ['space'],
  },
  nodejs_heap_space_size_available_bytes: {
    help: 'Process heap space size available from Node.js in bytes.',
    labelNames: ['space'],
  },
  nodejs_version_info: { help: 'Node.js version info.', labelNames: ['version', 'major', 'minor', 'patch'] },
} as const satisfies Readonly<Record<string, Figure>>;
