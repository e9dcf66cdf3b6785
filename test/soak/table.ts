import type { SoakResult } from './run-soak.ts';

const TITLES = ['check', 'looked at', 'explained', 'broken', 'measured'];

/** As Markdown, which reads well in a terminal too; what is broken follows. */
export function tableOf({ seed, seconds, operations, calls, troubles, tallies }: SoakResult): string {
  const cells = [
    TITLES,
    ...tallies.map(({ check, looked, explained, broken, measured }) =>
      [check, looked, explained, looked === 0 ? 'not looked at' : broken, measured].map(String),
    ),
  ];
  const widths = TITLES.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const lines = cells.map((line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`);
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  const made = Object.entries(troubles).map(([name, times]) => `${times} × ${name}`);
  return [
    `seed ${seed}: ${operations} operations and ${calls} calls in ${seconds} s; ${made.join(', ') || 'no trouble'}`,
    '',
    lines[0],
    rule,
    ...lines.slice(1),
    ...tallies.flatMap(({ check, problems }) => problems.map((problem) => `BROKEN ${check}: ${problem}`)),
  ].join('\n');
}
