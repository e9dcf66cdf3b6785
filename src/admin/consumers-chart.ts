import type { Consumer, Consumers } from '../caller/key-report.ts';
import { figure } from '../common/figure.ts';
import { escaped } from './html.ts';

/** Consumers that are shown by name; the rest is one row. */
const SHOWN = 4;
/** A narrower part of the bar has no room for its number. */
const MIN_LABELLED = 6;

/** Returns who used the quota of one key: a bar for the operations and the clients of the last hour, and of today. */
export function consumersOf(key: string, { lastHour, today }: Consumers): string {
  return `<section class="used">
      <h3>${escaped(key)}</h3>
      <div class="charts">
        ${chart('Operations, last hour', lastHour.operations)}
        ${chart('Clients, last hour', lastHour.clients)}
        ${chart('Operations, today', today.operations)}
        ${chart('Clients, today', today.clients)}
      </div>
    </section>`;
}

/** A part of the bar has the number of its row in it, and so tells without its color. */
function chart(title: string, consumers: readonly Consumer[]): string {
  const shown = withRest(consumers);
  let x = 0;
  const parts = shown.map(({ share }, index) => {
    const width = share * 100;
    const part = `<rect class="part-${index}" x="${x.toFixed(2)}%" width="${width.toFixed(2)}%" height="100%"/>`;
    const middle = (x + width / 2).toFixed(2);
    x += width;
    return width < MIN_LABELLED ? part : `${part}<text x="${middle}%" y="50%">${index + 1}</text>`;
  });

  const rows = shown.map(({ name, callsMade, callsSaved, refused, share }, index) => {
    const more = refused > 0 ? `, ${figure(refused)} refused` : '';
    const use = `<b>${Math.round(share * 100)} %</b> ${figure(callsMade)} made, ${figure(callsSaved)} saved${more}`;
    return `<li><i class="part-${index}">${index + 1}</i> ${escaped(name)} <small>${use}</small></li>`;
  });
  return `<figure>
          <figcaption>${title}</figcaption>
          <svg role="img" aria-label="${title}: parts of the calls made, as listed below">${parts.join('')}</svg>
          <ol>${rows.join('')}</ol>
        </figure>`;
}

function withRest(consumers: readonly Consumer[]): readonly Consumer[] {
  if (consumers.length <= SHOWN + 1) return consumers;
  const rest = consumers.slice(SHOWN);
  const sum = (countOf: (consumer: Consumer) => number) => rest.reduce((total, each) => total + countOf(each), 0);
  const others = {
    name: `${rest.length} others`,
    callsMade: sum(({ callsMade }) => callsMade),
    callsSaved: sum(({ callsSaved }) => callsSaved),
    refused: sum(({ refused }) => refused),
    share: sum(({ share }) => share),
  };
  return [...consumers.slice(0, SHOWN), others];
}

export const CONSUMERS_STYLE = `
.used h3 { font-family: monospace; font-size: 0.9rem; margin-block: 1rem 0.4rem; }
.used svg { block-size: 1.4rem; border: 0; }
.used rect { stroke: Canvas; stroke-width: 1px; }
.used text { fill: light-dark(#fff, #000); font-size: 0.8rem; font-weight: bold; text-anchor: middle; dominant-baseline: central; }
.used ol { list-style: none; margin: 0.3rem 0 0; padding: 0; font-size: 0.85rem; overflow-wrap: anywhere; }
.used i { display: inline-block; inline-size: 1.3em; text-align: center; font-style: normal; font-weight: bold; color: light-dark(#fff, #000); }
.used li small { display: inline; opacity: 1; white-space: normal; }
.part-0 { fill: light-dark(#0969da, #58a6ff); background: light-dark(#0969da, #58a6ff); }
.part-1 { fill: light-dark(#bc4c00, #f0883e); background: light-dark(#bc4c00, #f0883e); }
.part-2 { fill: light-dark(#1a7f37, #3fb950); background: light-dark(#1a7f37, #3fb950); }
.part-3 { fill: light-dark(#8250df, #d2a8ff); background: light-dark(#8250df, #d2a8ff); }
.part-4 { fill: light-dark(#59636e, #9198a1); background: light-dark(#59636e, #9198a1); }
`;
