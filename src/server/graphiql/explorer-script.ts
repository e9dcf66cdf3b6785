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
  let tabId;

  // What is typed, API keys too, stays in this browser tab. The theme alone holds for all of them.
  const storageOf = (name) => (name === 'graphiql:theme' ? localStorage : sessionStorage);
  const storage = {
    getItem: (name) => storageOf(name).getItem(name),
    setItem: (name, value) => storageOf(name).setItem(name, value),
    removeItem: (name) => storageOf(name).removeItem(name),
    clear: () => [localStorage, sessionStorage].forEach((each) => each.clear()),
  };

  // GraphiQL opens one more tab on a reload, unless its editors start with what a stored tab holds.
  const { query, variables, headers } = storedTab() ?? options.defaultTabs[0];
  const linkedQuery = new URLSearchParams(location.search).get('query') ?? query;
  if (linkedQuery === query) {
    Object.assign(options, { initialQuery: query ?? '', initialVariables: variables ?? '', initialHeaders: headers ?? '' });
  }

  // The editor measures its font once. In another font's measures, the cursor would stand beside the text.
  await document.fonts.load('15px "Fira Code"').catch(() => undefined);
  YogaGraphiQL.renderYogaGraphiQL(document.getElementById('root'), { ...options, storage, fetcher, onTabChange });

  function storedTab() {
    try {
      const { tabs, activeTabIndex } = JSON.parse(storage.getItem('graphiql:tabState'));
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
    return [...parts, quota(headers)].filter(Boolean).map(unbroken).join(' · ');
  }

  // From RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers).
  function quota(headers) {
    const limits = new Map(items(headers.get('ratelimit-policy'), 'q'));
    return items(headers.get('ratelimit'), 'r')
      .map(([name, left]) => {
        const of = limits.has(name) ? ' of ' + limits.get(name).toLocaleString('en') : ' left';
        return left.toLocaleString('en') + of + ({ minute: ' this minute', day: ' today' }[name] ?? ' in the ' + name);
      })
      .join(', ');
  }

  function items(header, parameter) {
    return [...(header ?? '').matchAll(/"([^"]*)"([^,]*)/g)].flatMap(([, name, parameters]) => {
      const value = new RegExp(';\\s*' + parameter + '=(\\d+)').exec(parameters)?.[1];
      return value === undefined ? [] : [[name, Number(value)]];
    });
  }

  // The line breaks behind commas and dots alone.
  function unbroken(part) {
    return part.replaceAll(/(?<!,) /g, '\u00a0');
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
