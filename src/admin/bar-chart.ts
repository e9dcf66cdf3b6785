import { figure } from '../common/figure.ts';

export interface Bar {
  readonly value: number;
  readonly startsAt: Date;
}

const BAR_WIDTH = 4;
const HEIGHT = 40;

/**
 * Returns a chart as SVG: a bar for each minute, the highest one as high as the chart. Its caption has the sum and the maximum.
 *
 * @param name of the counted thing, such as "calls made"; also the class of its bars.
 */
export function barChart(name: string, bars: readonly Bar[]): string {
  const sum = bars.reduce((total, { value }) => total + value, 0);
  const highest = Math.max(1, ...bars.map(({ value }) => value));
  const rects = bars.map(({ value, startsAt }, index) => {
    if (value === 0) return '';
    // A small value stays visible beside a large one.
    const height = Math.max(1, (value / highest) * HEIGHT).toFixed(1);
    const place = `x="${index * BAR_WIDTH}" y="${HEIGHT - Number(height)}" width="${BAR_WIDTH - 1}" height="${height}"`;
    return `<rect ${place}><title>${startsAt.toISOString().slice(11, 16)} UTC: ${figure(value)}</title></rect>`;
  });

  const maximum = sum === 0 ? '' : `, at most ${figure(highest)} a minute`;
  const size = `viewBox="0 0 ${bars.length * BAR_WIDTH} ${HEIGHT}" preserveAspectRatio="none"`;
  return `<figure class="${name.replaceAll(' ', '-')}">
        <figcaption>${name}: <b>${figure(sum)}</b>${maximum}</figcaption>
        <svg ${size} role="img" aria-label="${name} by the minute">${rects.join('')}</svg>
        <small><span>an hour ago</span><span>now</span></small>
      </figure>`;
}
