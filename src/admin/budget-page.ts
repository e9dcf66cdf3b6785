import type { BudgetWindow } from '../caller/budget.ts';
import type { CallerView } from '../caller/callers.ts';
import type { Health } from '../server/health.ts';

/** Callers that are shown: those that called last. */
const MOST_SHOWN = 100;

/** The page around the table, which `BUDGET_SCRIPT` keeps up to date. Its addresses are relative, so that it can be mounted anywhere. */
export function budgetPage(table: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>petql: budgets</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="budget/style.css" />
    <script src="budget/script.js" defer></script>
  </head>
  <body>
    <h1>petql: budgets</h1>
    <main id="table" aria-live="off">${table}</main>
    <p id="connection" role="status"></p>
  </body>
</html>
`;
}

/** What changes: the state of the process, and a row for each caller that called lately. */
export async function budgetTable(views: readonly CallerView[], health: Health): Promise<string> {
  const shown = await Promise.all(views.slice(0, MOST_SHOWN).map(row));
  const more = views.length - shown.length;
  return [
    `<p>${escaped(stateOf(health))}</p>`,
    '<table><thead><tr>',
    ...['Caller', 'Plan', 'Minute', 'Day', 'Waiting', 'Gate', 'Calls made', 'Calls saved'].map(
      (title) => `<th scope="col">${title}</th>`,
    ),
    `</tr></thead><tbody>${shown.join('')}</tbody></table>`,
    shown.length === 0 ? '<p>Nobody has called yet.</p>' : more > 0 ? `<p>And ${more} who called before.</p>` : '',
  ].join('');
}

async function row({ name, budget, made, saved }: CallerView): Promise<string> {
  const { plan, windows, queued, closedUntil } = budget;
  const called = await name().catch(() => 'not known while Redis is away');
  const windowOf = (wanted: BudgetWindow['window']) => windows.find(({ window }) => window === wanted);
  const cells = [
    `<code>${escaped(called)}</code>`,
    escaped(plan),
    meter(windowOf('MINUTE')),
    meter(windowOf('DAY')),
    String(queued),
    closedUntil ? `closed until ${escaped(closedUntil.toISOString())}` : 'open',
    String(made),
    String(saved),
  ];
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

function meter(window: BudgetWindow | undefined): string {
  if (!window) return '';
  const { used, limit, resetAt } = window;
  const reset = resetAt ? `, resets ${escaped(resetAt.toISOString().slice(11, 19))}` : '';
  return `<meter max="${limit}" high="${limit * 0.8}" value="${used}"></meter> ${used} of ${limit}${reset}`;
}

function stateOf({ draining, redis, secretsDiffer, gatesClosed, singleReadsWork }: Health): string {
  const parts = [
    draining ? 'Stopping.' : 'Running.',
    redis === undefined ? 'No Redis: one process.' : `Redis: ${redis}.`,
    ...(secretsDiffer ? ['Others use another key secret: each counts for itself.'] : []),
    `Gates closed: ${gatesClosed}.`,
    ...(singleReadsWork ? [] : ['The service does not answer for single animals.']),
  ];
  return parts.join(' ');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

/** Runs in the browser. What comes is made here, with all that is not ours escaped. */
export const BUDGET_SCRIPT = `
const table = document.getElementById('table');
const connection = document.getElementById('connection');
const events = new EventSource('budget/events');
events.onopen = () => { connection.textContent = 'Live.'; };
events.onmessage = ({ data }) => { table.innerHTML = JSON.parse(data); };
events.onerror = () => { connection.textContent = 'No connection; what stands above is old.'; };
`;

export const BUDGET_STYLE = `
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { margin: 2rem; }
table { border-collapse: collapse; }
th, td { padding: 0.3rem 0.8rem; text-align: left; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
td { font-variant-numeric: tabular-nums; }
meter { inline-size: 8rem; }
`;
