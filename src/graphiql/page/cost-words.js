/**
 * What the line under the result says of a run, and of a dry run.
 *
 * @typedef {import('../../server/operation.ts').DryRun} DryRun
 * @typedef {import('../../server/operation.ts').OperationResult<unknown>} Result
 */

/** @type {Readonly<Record<string, string>>} */
const SPANS = { minute: ' this minute', day: ' today' };

/**
 * Such as "RATE_LIMITED · 0 calls · 0 saved · retry at 12:31:04", or "1 call · 29 saved · fresh · 3 of 60 used this minute, 14 of 1,000 today".
 *
 * @param {Headers} headers
 * @param {Result} result
 */
function describeRun(headers, { data, errors, extensions }) {
  const { upstreamCalls = 0, savedCalls = 0, oldestAgeMs, staleReason, dryRun } = extensions?.petql ?? {};
  const retryAt = errors?.find((error) => error.extensions?.retryAt)?.extensions.retryAt;
  const parts = dryRun
    ? ['dry run', costOf(dryRun), dryRun.fits ? 'fits now' : `fits at ${time(new Date(dryRun.fitsAt))}`]
    : [calls(upstreamCalls), `${figure(savedCalls)} saved`];
  parts.unshift(...problemsOf(errors, data));
  if (staleReason) parts.push(`${span(oldestAgeMs ?? 0)} old: ${staleReason.toLowerCase().replaceAll('_', ' ')}`);
  else if (oldestAgeMs !== undefined) parts.push('fresh');
  if (retryAt) parts.push(`retry at ${time(new Date(retryAt))}`);
  return [...parts, usedQuota(headers)].filter(Boolean).join(' · ');
}

/**
 * What went wrong, by its codes: a run that has cost little may have failed.
 *
 * @param {Result['errors']} errors
 * @param {unknown} data
 */
function problemsOf(errors, data) {
  const codes = /** @type {Set<string>} */ (new Set(errors?.map(({ extensions }) => extensions?.code ?? 'error')));
  const fields = /** @type {({ userErrors?: unknown[] } | null)[]} */ (Object.values(data ?? {}));
  if (fields.some((field) => field?.userErrors?.length)) codes.add('userErrors');
  return codes.size > 0 ? [[...codes].join(', ')] : [];
}

/**
 * Such as "would cost 1 to 3 calls · fits at 12:31:04".
 *
 * @param {DryRun} dryRun
 */
function describeDryRun(dryRun) {
  const { upstreamCalls, fits, fitsAt } = dryRun;
  if (upstreamCalls === 0) return 'would cost no call';
  return `would cost ${costOf(dryRun)} · ${fits ? 'fits' : `fits at ${time(new Date(fitsAt))}`}`;
}

/**
 * Each write is a call. One list may answer all reads.
 *
 * @param {Pick<DryRun, 'upstreamCalls' | 'writes'>} cost
 */
function costOf({ upstreamCalls, writes }) {
  const min = writes + (upstreamCalls > writes ? 1 : 0);
  return (min < upstreamCalls ? `${figure(min)} to ` : '') + calls(upstreamCalls);
}

/**
 * From RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers).
 *
 * @param {Headers} headers
 */
function usedQuota(headers) {
  const limits = new Map(figuresOf(headers, 'ratelimit-policy'));
  return figuresOf(headers, 'ratelimit')
    .map(([name, remaining], index) => {
      const limit = limits.get(name) ?? NaN;
      const used = `${figure(limit - remaining)} of ${figure(limit)}`;
      return used + (index === 0 ? ' used' : '') + SPANS[name];
    })
    .join(', ');
}

/**
 * @param {Headers} headers
 * @param {string} header
 * @returns {[window: string, calls: number][]}
 */
function figuresOf(headers, header) {
  const figures = (headers.get(header) ?? '').matchAll(/"(\w+)";[rq]=(\d+)/g);
  return Array.from(figures, ([, name = '', count]) => [name, Number(count)]);
}

/** @param {number} count */
function calls(count) {
  return figure(count) + (count === 1 ? ' call' : ' calls');
}

/** @param {number} value */
function figure(value) {
  return value.toLocaleString('en');
}

/** @param {number} ms */
function span(ms) {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/**
 * A day's quota may fit tomorrow.
 *
 * @param {Date} date
 */
function time(date) {
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday ? '' : `${date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })} `;
  return day + date.toLocaleTimeString('en-GB');
}
