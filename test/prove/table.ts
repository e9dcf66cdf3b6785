import type { Outcome } from './scenario.ts';
import { shareOf } from './usage.ts';

/** One line of the table, as `--json` writes it too. */
export interface Row {
  readonly scenario: string;
  readonly plan: string;
  readonly windows: string;
  readonly replicas: number;
  readonly sent: number;
  readonly allowed: number | undefined;
  readonly share: number | undefined;
  readonly refusals: number;
  readonly measured: string;
  readonly goal: string;
  readonly ok: boolean;
  readonly seconds: number;
  readonly problems: readonly string[];
}

export function rowOf({ scenario, findings, seconds }: Outcome): Row {
  const { usage, arrivals, refusals, measured = '', problems } = findings;
  return {
    scenario: scenario.name,
    plan: scenario.plan,
    windows: scenario.windows,
    replicas: scenario.replicas,
    sent: usage?.sent ?? arrivals,
    allowed: usage?.allowed,
    share: usage && shareOf(usage),
    refusals,
    measured,
    goal: scenario.goal,
    ok: problems.length === 0,
    seconds: Math.round(seconds),
    problems,
  };
}

const TITLES = [
  'scenario',
  'plan',
  'windows',
  'replicas',
  'sent',
  'allowed',
  'used',
  '429s',
  'measured',
  'goal',
  '',
  's',
];

/** As Markdown, which reads well in a terminal too. */
export function tableOf(rows: readonly Row[]): string {
  const cells = [
    TITLES,
    ...rows.map((row) => [
      row.scenario,
      row.plan,
      row.windows,
      row.replicas,
      row.sent,
      row.allowed ?? '',
      row.share === undefined ? '' : `${(row.share * 100).toFixed(1)} %`,
      row.refusals,
      row.measured,
      row.goal,
      row.ok ? 'ok' : 'MISSED',
      row.seconds,
    ]),
  ].map((line) => line.map(String));
  const widths = TITLES.map((_, column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const lines = cells.map((line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`);
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [lines[0], rule, ...lines.slice(1)].join('\n');
}
