import { figure } from '../../common/figure.ts';
import { HOUR_MS, MINUTE_MS } from '../../common/plan.ts';
import type { Day } from './day.ts';
import { percentile } from './percentile.ts';
import { rowsOf, seconds, summaryOf, verdictOf } from './summary.ts';

/** Points of a curve. */
const POINTS = 96;
const WIDTH = 960;
const PAGE_CHART_HEIGHT = 240;
const COLORS = ['--first', '--second', '--third', '--fourth', '--fifth'];
/** Each curve is told by its dashes, too. One more than colors, so that thirty curves differ. */
const DASHES = ['none', '12 4', '3 3', '12 4 3 4', '7 7', '18 3 3 3 3 3'];

interface Curve {
  readonly name: string;
  readonly values: readonly number[];
}

interface ChartText {
  readonly title: string;
  readonly note: string;
  /** Labels a power of ten on the scale. */
  readonly label: (value: number) => string;
}

/** Returns a page with the table, and the age and the calls through the day as curves. It needs no other file. */
export function simulationPage(days: readonly Day[], durationMs: number, load: string): string {
  const summaries = days.map(summaryOf);
  const [titles = [], ...rows] = rowsOf(summaries);
  const names = titles.slice(1);

  const ages = days.map((day, index) => ({ name: names[index] ?? '', values: agesOf(day) }));
  const calls = days.map((day, index) => ({ name: names[index] ?? '', values: callsOf(day, durationMs) }));

  const hours = durationMs / HOUR_MS;
  const sliceMinutes = durationMs / POINTS / MINUTE_MS;
  const slice = sliceMinutes < 2 ? seconds(sliceMinutes * MINUTE_MS) : `${figure(Math.round(sliceMinutes))} min`;
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:" />
    <title>petql: simulated plans</title>
    <link rel="icon" href="data:," />
    <style>${PAGE_STYLE}</style>
  </head>
  <body>
    <main>
    <h1>${verdictOf(summaries)}</h1>
    <p>${load}</p>
    ${chart(ages, hours, { title: 'Age of the data', note: `median of ${slice}`, label: seconds })}
    ${chart(calls, hours, { title: 'Upstream calls', note: `in ${slice}`, label: figure })}
    <table>
      <thead><tr><th scope="col">Plan</th>${names.map((name) => `<th scope="col">${name}</th>`).join('')}</tr></thead>
      <tbody>${rows.map(([title, ...cells]) => `<tr><th scope="row">${title}</th>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`).join('')}</tbody>
    </table>
    </main>
  </body>
</html>
`;
}

function agesOf({ ages }: Day): readonly number[] {
  const length = ages.length / POINTS;
  return Array.from({ length: POINTS }, (_, point) =>
    percentile(ages.subarray(Math.floor(point * length), Math.floor((point + 1) * length)), 0.5),
  );
}

function callsOf({ callsAtMs }: Day, durationMs: number): readonly number[] {
  const counts = Array.from({ length: POINTS }, () => 0);
  for (const atMs of callsAtMs) {
    const point = Math.min(POINTS - 1, Math.floor((atMs / durationMs) * POINTS));
    counts[point] = (counts[point] ?? 0) + 1;
  }
  return counts;
}

/** Returns curves on a logarithmic scale, since plans differ by a factor of a hundred. */
function chart(curves: readonly Curve[], hours: number, { title, note, label }: ChartText): string {
  const values = curves.flatMap((curve) => curve.values).filter((value) => value > 0);
  const lowest = Math.floor(Math.log10(Math.min(1_000, ...values)));
  const highest = Math.max(lowest + 1, Math.ceil(Math.log10(Math.max(1, ...values))));
  const heightOf = (value: number) => Math.max(0, (Math.log10(value) - lowest) / (highest - lowest));
  const ticks = Array.from({ length: highest - lowest + 1 }, (_, index) => {
    const share = index / (highest - lowest);
    return `<span style="inset-block-end: ${(share * 100).toFixed(1)}%">${label(10 ** (lowest + index))}</span>`;
  });

  const paths = curves.map(({ values: points }, index) => {
    const line = points.map((value, point) => {
      const [x, y] = [(point / (POINTS - 1)) * WIDTH, PAGE_CHART_HEIGHT * (1 - heightOf(value))];
      // A slice without answers or calls has no point.
      return Number.isNaN(y) ? '' : `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    return `<polyline style="${strokeOf(index)}" points="${line.filter(Boolean).join(' ')}" />`;
  });

  const legend = curves.map(
    ({ name }, index) =>
      `<span><svg viewBox="0 0 48 4" aria-hidden="true"><line x2="48" y1="2" y2="2" style="${strokeOf(index)}" /></svg>${name}</span>`,
  );
  return `<figure>
      <figcaption><b>${title}</b>, ${note} ${legend.join(' ')}</figcaption>
      <div class="plot">
        <div class="ticks">${ticks.join('')}</div>
        <svg viewBox="0 0 ${WIDTH} ${PAGE_CHART_HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${title} through the day">${paths.join('')}</svg>
      </div>
      <div class="hours"><span>0 h</span><span>${hours / 2} h</span><span>${hours} h</span></div>
    </figure>`;
}

function strokeOf(index: number): string {
  return `stroke: var(${COLORS[index % COLORS.length]}); stroke-dasharray: ${DASHES[index % DASHES.length]}`;
}

const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  font-family: system-ui, sans-serif;
  line-height: 1.4;
  --line: color-mix(in srgb, currentColor 18%, transparent);
  --first: light-dark(#cf222e, #ff7b72);
  --second: light-dark(#0969da, #58a6ff);
  --third: light-dark(#1a7f37, #3fb950);
  --fourth: light-dark(#8250df, #d2a8ff);
  --fifth: light-dark(#7d4e00, #e3b341);
}
@media (forced-colors: active) { :root { --first: CanvasText; --second: CanvasText; --third: CanvasText; --fourth: CanvasText; --fifth: CanvasText; } }
body { margin: 2rem auto; max-inline-size: 60rem; padding-inline: 1rem; font-variant-numeric: tabular-nums; }
h1 { font-size: 1.3rem; }
figure { margin: 2rem 0; }
figcaption span { white-space: nowrap; margin-inline-start: 0.8rem; }
figcaption svg { inline-size: 3rem; block-size: 0.25rem; margin-inline-end: 0.3rem; vertical-align: middle; }
.plot { position: relative; block-size: 12rem; margin-block: 0.8rem 0.2rem; margin-inline-start: 4rem; border: solid var(--line); border-width: 0 0 1px 1px; }
.ticks span { position: absolute; inset-inline-end: 100%; margin-inline-end: 0.4rem; transform: translateY(50%); font-size: 0.8rem; white-space: nowrap; opacity: 0.75; }
svg { inline-size: 100%; block-size: 100%; overflow: visible; }
polyline, line { fill: none; stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.hours { display: flex; justify-content: space-between; margin-inline-start: 4rem; font-size: 0.8rem; opacity: 0.75; }
table { border-collapse: collapse; inline-size: 100%; }
th, td { padding: 0.4rem 0.5rem 0.4rem 0; border-block-end: 1px solid var(--line); text-align: end; }
th[scope='row'] { text-align: start; font-weight: normal; }
`;
