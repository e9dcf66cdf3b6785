/**
 * Runs in the browser, behind GraphiQL's bundle. It is text, since a bundler may add helpers to functions that the browser
 * does not have.
 */
export const EXPLORER_SCRIPT = String.raw`
;(async () => {
  const base = new URL('.', document.currentScript.src);
  self.MonacoEnvironment = { globalAPI: false, getWorkerUrl: (_id, label) => new URL(label + '.js', base).href };
  const options = JSON.parse(document.getElementById('graphiql-options').textContent);
  const usageLine = document.createElement('p');
  usageLine.id = 'usage';
  usageLine.setAttribute('role', 'status');
  const usageOfTabs = new Map();
  const SPANS = { minute: ' this minute', day: ' today' };
  let tabId;

  // GraphiQL opens one more tab on a reload, unless its editors start with what a stored tab holds.
  const { query, variables, headers } = storedTab() ?? options.defaultTabs[0];
  const linkedQuery = new URLSearchParams(location.search).get('query') ?? query;
  if (linkedQuery === query) {
    Object.assign(options, { initialQuery: query ?? '', initialVariables: variables ?? '', initialHeaders: headers ?? '' });
  }

  // The editor measures its font once. In another font's measures, the cursor would stand beside the text.
  await document.fonts.load('15px "Fira Code"').catch(() => undefined);
  // What is typed, API keys too, stays in this browser tab.
  const props = { ...options, storage: sessionStorage, fetcher, onTabChange };
  YogaGraphiQL.renderYogaGraphiQL(document.getElementById('root'), props);

  function storedTab() {
    try {
      const { tabs, activeTabIndex } = JSON.parse(sessionStorage.getItem('graphiql:tabState'));
      return tabs[activeTabIndex];
    } catch {
      return undefined;
    }
  }

  function onTabChange({ tabs, activeTabIndex }) {
    tabId = tabs[activeTabIndex].id;
    usageLine.textContent = usageOfTabs.get(tabId) ?? '';
  }

  async function fetcher({ query, variables, operationName }, given) {
    const headers = new Headers(given?.headers);
    headers.set('accept', 'application/graphql-response+json, application/json');
    headers.set('content-type', 'application/json');
    shareKey(headers);
    const body = JSON.stringify({ query, variables, operationName });
    const response = await fetch(location.pathname, { method: 'POST', headers, body });
    const result = await response.json().catch(() => undefined);
    if (!result) throw new Error('Expected a GraphQL response, got HTTP ' + response.status + '.');
    if (operationName === 'IntrospectionQuery') return result;
    usageOfTabs.set(tabId, describe(response.headers, result));
    usageLine.textContent = usageOfTabs.get(tabId);
    document.querySelector('.graphiql-response').append(usageLine);
    return result;
  }

  // A key that was typed in one tab holds for the tabs that still have the placeholder.
  function shareKey(headers) {
    const authorization = headers.get('authorization');
    if (authorization === null) return;
    if (authorization !== 'Bearer YOUR_API_KEY') sessionStorage.setItem('petql:authorization', authorization);
    else headers.set('authorization', sessionStorage.getItem('petql:authorization') ?? authorization);
  }

  // Such as "1 call · 29 saved · fresh · 57 of 60 this minute, 986 of 1,000 today".
  function describe(headers, { errors, extensions }) {
    const { upstreamCalls = 0, savedCalls = 0, oldestAgeMs, staleReason, dryRun } = extensions?.petql ?? {};
    const retryAfterMs = errors?.find((error) => error.extensions?.retryAfterMs)?.extensions.retryAfterMs;
    const parts = dryRun
      ? ['dry run', 'at most ' + calls(dryRun.upstreamCalls), dryRun.fits ? 'fits now' : 'fits in ' + span(dryRun.waitMs)]
      : [calls(upstreamCalls), savedCalls.toLocaleString('en') + ' saved'];
    if (staleReason) parts.push(span(oldestAgeMs) + ' old: ' + staleReason.toLowerCase().replaceAll('_', ' '));
    else if (oldestAgeMs !== undefined) parts.push('fresh');
    if (retryAfterMs) parts.push('retry in ' + span(retryAfterMs));
    return [...parts, quota(headers)].filter(Boolean).join(' · ');
  }

  // From RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers).
  function quota(headers) {
    const figures = (name) => [...(headers.get(name) ?? '').matchAll(/"(\w+)";[rq]=(\d+)/g)];
    const limits = new Map(figures('ratelimit-policy').map(([, name, limit]) => [name, Number(limit).toLocaleString('en')]));
    return figures('ratelimit')
      .map(([, name, left]) => Number(left).toLocaleString('en') + ' of ' + limits.get(name) + SPANS[name])
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
})();
`;

/** Stands behind GraphiQL's style: the line under the result, and one column on a narrow screen. */
export const EXPLORER_STYLE = `
/* A dragged tab would jump away from under the click after fonts or the window have changed their size. */
.graphiql-tab { transform: none !important; }

#usage {
  margin: 0;
  padding: var(--px-8) var(--px-12);
  border-top: 1px solid hsla(var(--color-neutral), var(--alpha-background-heavy));
  font-variant-numeric: tabular-nums;
  text-wrap: balance;
}
#usage:empty { display: none; }

@media (max-width: 700px) {
  .graphiql-container { height: 100dvh; flex-direction: column; }
  .graphiql-container .graphiql-sidebar { width: auto; flex-direction: row; padding: var(--px-4) var(--px-8); }
  .graphiql-container .graphiql-main { min-height: 0; }
  .graphiql-container .graphiql-sessions { margin: 0; border-radius: 0; }
  .graphiql-container .graphiql-logo { display: none; }
  .graphiql-container #graphiql-session { flex-direction: column; min-height: 0; }
  .graphiql-container .graphiql-editors,
  .graphiql-container .graphiql-response { min-height: 0; width: auto; }
  .graphiql-horizontal-drag-bar { display: none; }
  /* The docs cover the editors while they are open. */
  .graphiql-container .graphiql-plugin { flex: 0 0 100% !important; border: 0; }
}
`;
