/** Runs in the browser: what the line under the result says of a run, and of a dry run. */
export const COST_WORDS = String.raw`
const SPANS = { minute: ' this minute', day: ' today' };

// Such as "1 call · 29 saved · fresh · 3 of 60 used this minute, 14 of 1,000 today".
function describeRun(headers, { errors, extensions }) {
  const { upstreamCalls = 0, savedCalls = 0, oldestAgeMs, staleReason, dryRun } = extensions?.petql ?? {};
  const retryAt = errors?.find((error) => error.extensions?.retryAt)?.extensions.retryAt;
  const parts = dryRun
    ? ['dry run', costOf(dryRun), dryRun.fits ? 'fits now' : 'fits at ' + time(new Date(dryRun.fitsAt))]
    : [calls(upstreamCalls), savedCalls.toLocaleString('en') + ' saved'];
  if (staleReason) parts.push(span(oldestAgeMs) + ' old: ' + staleReason.toLowerCase().replaceAll('_', ' '));
  else if (oldestAgeMs !== undefined) parts.push('fresh');
  if (retryAt) parts.push('retry at ' + time(new Date(retryAt)));
  return [...parts, usedQuota(headers)].filter(Boolean).join(' · ');
}

// Such as "would cost 1 to 3 calls · fits at 12:31:04".
function describeDryRun(dryRun) {
  const { upstreamCalls, fits, fitsAt } = dryRun;
  if (upstreamCalls === 0) return 'would cost no call';
  return 'would cost ' + costOf(dryRun) + ' · ' + (fits ? 'fits' : 'fits at ' + time(new Date(fitsAt)));
}

// Each write is a call. One list may answer all reads.
function costOf({ upstreamCalls, writes }) {
  const min = writes + (upstreamCalls > writes ? 1 : 0);
  return (min < upstreamCalls ? min.toLocaleString('en') + ' to ' : '') + calls(upstreamCalls);
}

// From RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers).
function usedQuota(headers) {
  const figures = (name) => [...(headers.get(name) ?? '').matchAll(/"(\w+)";[rq]=(\d+)/g)];
  const limits = new Map(figures('ratelimit-policy').map(([, name, limit]) => [name, Number(limit)]));
  return figures('ratelimit')
    .map(([, name, remaining], index) => {
      const limit = limits.get(name);
      const used = (limit - remaining).toLocaleString('en') + ' of ' + limit.toLocaleString('en');
      return used + (index === 0 ? ' used' : '') + SPANS[name];
    })
    .join(', ');
}

function calls(count) {
  return count.toLocaleString('en') + (count === 1 ? ' call' : ' calls');
}

function span(ms) {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 120) return seconds + ' s';
  return seconds < 7200 ? Math.round(seconds / 60) + ' min' : Math.round(seconds / 3600) + ' h';
}

// A day's quota may fit tomorrow.
function time(date) {
  const isToday = date.toDateString() === new Date().toDateString();
  const day = isToday ? '' : date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' }) + ' ';
  return day + date.toLocaleTimeString('en-GB');
}
`;
