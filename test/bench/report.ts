import type { Result } from './bench.ts';
import type { Growth } from './growth.ts';
import type { Spread } from './statistics.ts';
import type { Workload } from './workloads.ts';

export function coldStartTable(coldStarts: readonly { contestant: string; ms: Spread }[]): string {
  return table('From the start of the process to the first answer', [
    ['', 'ms', 'from', 'to'],
    ...coldStarts.map(({ contestant, ms: { median, lowest, highest } }) => [
      contestant,
      figure(median),
      figure(lowest),
      figure(highest),
    ]),
  ]);
}

export function resultTable(workload: Workload, connections: number, results: readonly Result[]): string {
  const baselines = Object.keys(results[0]?.ratios ?? {});
  return table(`${workload.title}; connections: ${connections}`, [
    [
      '',
      'op/s',
      'from',
      'to',
      'p50 ms',
      'p99 ms',
      'CPU µs/op',
      'MiB',
      'calls/op',
      ...baselines.map((_, index) => `÷ ${'abcd'[index]}`),
    ],
    ...results.map(({ contestant, figures, ratios }) => [
      baselines.includes(contestant) ? `${contestant} (${'abcd'[baselines.indexOf(contestant)]})` : contestant,
      figure(figures.operationsPerSecond.median),
      figure(figures.operationsPerSecond.lowest),
      figure(figures.operationsPerSecond.highest),
      figure(figures.p50Ms.median),
      figure(figures.p99Ms.median),
      figure(figures.cpuMicrosPerOperation.median),
      figure(figures.residentMiB.median),
      figures.upstreamCallsPerOperation.median.toFixed(3),
      ...baselines.map((name) => ratios[name]?.median.toFixed(2) ?? ''),
    ]),
  ]);
}

/** A bar a point, as long as the cost of one operation there; beside it the cost of each unit. */
export function growthPlots(growth: readonly Growth[]): string {
  return growth
    .map(({ title, unit, points }) => {
      const highest = Math.max(...points.map(({ micros }) => micros.median));
      const rows = points.map(({ size, micros }) => [
        `${size.toLocaleString('en')} ${unit}`,
        `${figure(micros.median)} µs`,
        '█'.repeat(Math.max(1, Math.round((micros.median / highest) * 40))),
      ]);
      return `${title}\n${rows.map(([size = '', micros = '', bar]) => `  ${size.padStart(28)} ${micros.padStart(12)} ${bar}`).join('\n')}\n`;
    })
    .join('\n');
}

function table(title: string, rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  '),
  );
  return `${title}\n${lines.join('\n')}\n`;
}

/** Three digits that count. */
function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}
