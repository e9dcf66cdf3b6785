import type { KeyReport } from '../caller/key-report.ts';
import type { QuotaWindow } from '../caller/quota.ts';
import { figure } from '../common/figure.ts';
import type { Health } from '../server/http/health.ts';
import { barChart } from './bar-chart.ts';
import { CONSUMERS_STYLE, consumersOf } from './consumers-chart.ts';
import { escaped } from './html.ts';
import type { Minute } from './last-hour.ts';
import type { AdminSources, Totals } from './metrics.ts';
import { QUOTA_RELOAD } from './quota-reload.ts';

/** Keys for which it shows who used the quota. */
const MAX_CONSUMER_KEYS = 20;

/** Returns a page with the state of the process and a row for each caller. The page follows it by itself. */
export async function quotaPage(
  { callers, health, replicas }: AdminSources,
  totals: Totals,
  lastHour: readonly Minute[],
): Promise<string> {
  const { keys, more } = await callers.report();
  // Sorted by name, so that rows keep their places.
  const rows = keys.map(row).toSorted();
  const used = keys.slice(0, MAX_CONSUMER_KEYS).map(({ key, consumers }) => consumersOf(key, consumers));
  const note = rows.length === 0 ? 'No calls yet.' : more > 0 ? `And ${figure(more)} callers before these.` : '';
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>petql: quotas</title>
    <link rel="icon" href="data:," />
    <style>${STYLE}</style>
  </head>
  <body>
    <header></header>
    <main>
    <h1>petql: quotas</h1>
    <p>${escaped(stateOf(health(), replicas.count))}</p>
    <h2>This process since its start</h2>
    <dl>${figures(totals)}</dl>
    <h2>The last hour of this process, by the minute</h2>
    <div class="charts">
      ${charts(lastHour)}
    </div>
    <h2>API keys</h2>
    <p class="note">Minute and day count the calls of all replicas, as this process saw them last. Queued, made and saved are of this process. Times are UTC.</p>
    <table>
      <thead><tr>${TITLES.map((title) => `<th scope="col"${classOf(title)}>${title}</th>`).join('')}</tr></thead>
      <tbody>${rows.join('')}</tbody>
    </table>
    <p>${note}</p>
    ${used.length === 0 ? '' : '<h2>Who used the quota, by this process</h2>'}
    ${used.toSorted().join('')}
    </main>
    <noscript><a href="">Reload</a></noscript>
    <script>${QUOTA_RELOAD}</script>
  </body>
</html>
`;
}

const TITLES = ['Caller', 'Plan', 'Minute', 'Day', 'Queued', 'State', 'Calls made', 'Calls saved'];
const FIGURES: ReadonlySet<string | undefined> = new Set(['Queued', 'Calls made', 'Calls saved']);

function classOf(title: string | undefined): string {
  return FIGURES.has(title) ? ' class="figure"' : '';
}

function row(report: KeyReport): string {
  const { key, plan, windows, queued, callsMade, callsSaved } = report;
  const meterOf = (wanted: QuotaWindow['window']) => meter(windows.find(({ window }) => window === wanted));

  const caller = `<th scope="row" ${attributesOf(TITLES[0])}><code>${escaped(key)}</code></th>`;
  const cells = [
    plan === null ? 'not known yet' : escaped(plan),
    meterOf('MINUTE'),
    meterOf('DAY'),
    figure(queued),
    stateOfKey(report),
    figure(callsMade),
    figure(callsSaved),
  ];
  return `<tr>${caller}${cells.map((cell, index) => `<td ${attributesOf(TITLES[index + 1])}>${cell}</td>`).join('')}</tr>`;
}

function attributesOf(title = ''): string {
  return `data-title="${title}"${classOf(title)}`;
}

function stateOfKey({ isRejected, pausedUntil, windows }: KeyReport): string {
  if (isRejected) return '<strong>rejected</strong>';
  if (pausedUntil) return `<strong>paused until ${time(pausedUntil)}</strong>`;
  return windows.some(({ remaining }) => remaining === 0) ? 'exhausted' : 'active';
}

function meter(window: QuotaWindow | undefined): string {
  if (!window) return 'not known yet';
  const { used, limit, resetAt } = window;
  const reset = resetAt ? `<small>resets ${time(resetAt)}</small>` : '';
  const name = window.window === 'MINUTE' ? 'Used this minute' : 'Used today';
  return `<meter aria-label="${name}" max="${limit}" high="${limit * 0.8}" optimum="0" value="${used}"></meter> <span>${figure(used)} of ${figure(limit)} used</span>${reset}`;
}

function figures({ callsMade, callsSaved, refused, stale }: Totals): string {
  const share = callsSaved / Math.max(1, callsMade + callsSaved);
  const pairs = [
    ['calls made', figure(callsMade)],
    ['calls saved', figure(callsSaved)],
    ['share saved', `${Math.floor(share * 100)} %`],
    ['operations refused', figure(refused)],
    ['stale responses', figure(stale)],
  ];
  return pairs.map(([term, value]) => `<div><dt>${term}</dt><dd>${value}</dd></div>`).join('');
}

function charts(lastHour: readonly Minute[]): string {
  const barsOf = (counted: 'callsMade' | 'callsSaved' | 'refused') =>
    lastHour.map(({ startsAt, [counted]: value }) => ({ startsAt, value }));
  return [
    barChart('calls made', barsOf('callsMade')),
    barChart('calls saved', barsOf('callsSaved')),
    barChart('operations refused', barsOf('refused')),
  ].join('\n      ');
}

function stateOf(
  { isDraining, redis, pausedKeys, isGetRouteWorking, closed, isServerKeyRejected }: Health,
  replicas: number,
): string {
  const parts = [
    isDraining ? 'Stopping.' : 'Running.',
    redis === undefined ? 'No Redis: one replica.' : `Redis ${redis}.`,
    ...(redis === undefined ? [] : [`Replicas: ${replicas}.`]),
    ...(pausedKeys > 0 ? [`Paused keys: ${figure(pausedKeys)}.`] : []),
    ...(isGetRouteWorking ? [] : ['The pet API has no route for single pets.']),
    ...(isServerKeyRejected ? ['The pet API does not accept the key of the server.'] : []),
    ...(closed.length > 0 ? [`Closed: ${closed.map(({ operation }) => operation).join(', ')}.`] : []),
  ];
  return parts.join(' ');
}

/** Returns a time such as "2026-11-22 21:00:00 UTC". */
function time(iso: string): string {
  return `<time>${iso.slice(0, 19).replace('T', ' ')} UTC</time>`;
}

const STYLE = `
:root { color-scheme: light dark; font-family: system-ui, sans-serif; line-height: 1.4; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { margin: 2rem auto; max-inline-size: 80rem; padding-inline: 1rem; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 1rem; }
header p { margin: 0; font-weight: bold; }
h1 { font-size: 1.4rem; }
h2 { font-size: 1rem; margin-block: 1.6rem 0.4rem; }
small, dt, .note { font-size: 0.85rem; opacity: 0.75; }
small { display: block; white-space: nowrap; }
dl { display: flex; flex-wrap: wrap; gap: 0.6rem 2rem; margin: 0; }
dd { margin: 0; font-size: 1.4rem; }
table { border-collapse: collapse; inline-size: 100%; }
th, td { padding: 0.5rem 0.8rem 0.5rem 0; text-align: start; vertical-align: top; border-block-end: 1px solid var(--line); }
th { font-size: 0.85rem; }
tbody th { font-weight: normal; }
dd, td { font-variant-numeric: tabular-nums; }
.figure { text-align: end; }
code, time, td span { white-space: nowrap; }
meter { inline-size: 4rem; }
.charts { display: flex; flex-wrap: wrap; gap: 1rem 2rem; }
figure { flex: 1 1 16rem; max-inline-size: 24rem; margin: 0; font-variant-numeric: tabular-nums; }
figure svg { display: block; inline-size: 100%; block-size: 3rem; margin-block: 0.3rem 0.1rem; border-block-end: 1px solid var(--line); }
figure small { display: flex; justify-content: space-between; }
.calls-made { fill: light-dark(#0969da, #58a6ff); }
.calls-saved { fill: light-dark(#1a7f37, #3fb950); }
.operations-refused { fill: light-dark(#cf222e, #ff7b72); }
${CONSUMERS_STYLE}
@media (max-width: 60rem) {
  thead { display: none; }
  tr { display: block; padding-block: 0.6rem; border-block-end: 1px solid var(--line); }
  td, tbody th { display: block; position: relative; padding: 0.2rem 0 0.2rem 7rem; border: 0; }
  .figure { text-align: start; }
  code { font-size: 0.75rem; }
  td::before, tbody th::before { content: attr(data-title); position: absolute; inset-inline-start: 0; opacity: 0.75; }
}
@media (max-width: 22rem) {
  td, tbody th { padding-inline-start: 0; }
  td::before, tbody th::before { position: static; display: block; }
  code { white-space: normal; overflow-wrap: anywhere; }
}
`;
