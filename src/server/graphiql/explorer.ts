import { COST_LINE } from './cost-line.ts';
import { COST_WORDS } from './cost-words.ts';

/** Starts GraphiQL, and sends what it runs. */
const EXPLORER = String.raw`
const base = new URL('.', document.currentScript.src);
self.MonacoEnvironment = { globalAPI: false, getWorkerUrl: (_id, label) => new URL(label + '.js', base).href };
const options = withNewKeys(JSON.parse(document.getElementById('graphiql-options').textContent));
const costLine = new CostLine({ dryRun, maxWaitMs: options.maxWaitMs });
/** What GraphiQL says of the document that was edited last. */
let edited = {};

// GraphiQL opens one more tab on a reload, unless its editors start with what a stored tab holds.
const { query, variables, headers } = storedTab() ?? options.defaultTabs[0];
const linkedQuery = new URLSearchParams(location.search).get('query') ?? query;
if (linkedQuery === query) {
  Object.assign(options, { initialQuery: query ?? '', initialVariables: variables ?? '', initialHeaders: headers ?? '' });
}

// The editor measures its font once. In another font's measures, the cursor would stand beside the text.
await document.fonts.load('15px "Fira Code"').catch(() => undefined);
// What is typed, API keys too, stays in this browser tab.
const props = { ...options, storage: sessionStorage, fetcher, onEditQuery, onTabChange };
YogaGraphiQL.renderYogaGraphiQL(document.getElementById('root'), props);
costLine.update(undefined, operationOf({ query: linkedQuery, variables, headers }));

// Each visitor creates a pet, and nobody gets the one of another.
function withNewKeys(given) {
  const key = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join('');
  for (const tab of given.defaultTabs) tab.variables = tab.variables?.replace('NEW_KEY', 'momo-' + key);
  return given;
}

function storedTab() {
  try {
    const { tabs, activeTabIndex } = JSON.parse(sessionStorage.getItem('graphiql:tabState'));
    return tabs[activeTabIndex];
  } catch {
    return undefined;
  }
}

function onEditQuery(query, document) {
  const operations = document?.definitions.filter(({ kind }) => kind === 'OperationDefinition').length ?? 0;
  edited = { query, operations };
  const url = new URL(location.href);
  url.searchParams.set('query', query);
  history.replaceState({}, '', url);
}

function onTabChange({ tabs, activeTabIndex }) {
  const tab = tabs[activeTabIndex];
  costLine.update(tab.id, operationOf(tab), tab.response);
}

function operationOf({ query, variables, headers, operationName }) {
  const operations = edited.query === query ? edited.operations : 1;
  // GraphiQL names the only operation sooner or later.
  const name = operations > 1 ? (operationName ?? undefined) : undefined;
  const key = JSON.stringify([query, variables || '', name]);
  return { key, request: operations > 0 ? requestOf({ query, variables, headers, operationName: name }) : undefined };
}

// Undefined where something is no JSON, or where the run would have no API key.
function requestOf({ variables, headers: headersText, ...operation }) {
  try {
    const headers = headersOf(JSON.parse(headersText || '{}'));
    if (options.needsKey && !headers.has('authorization')) return undefined;
    if (headers.get('authorization') === PLACEHOLDER) return undefined;
    return { headers, body: { ...operation, variables: JSON.parse(variables || '{}') } };
  } catch {
    return undefined;
  }
}

async function dryRun({ headers, body }) {
  headers.set('petql-dry-run', '1');
  // With HTTP 200 for an invalid operation: a browser logs any 400 as an error of the page.
  headers.set('accept', 'application/json');
  const { result } = await send({ headers, body });
  return result.extensions?.petql?.dryRun;
}

async function fetcher({ query, variables, operationName }, given) {
  const request = { headers: headersOf(given?.headers), body: { query, variables, operationName } };
  storeKey(request.headers);
  if (operationName === 'IntrospectionQuery') return (await send(request)).result;
  const end = costLine.begin();
  let text = '';
  try {
    const { headers, result } = await send(request);
    text = describeRun(headers, result);
    return result;
  } finally {
    end(text);
  }
}

async function send({ headers, body }) {
  const response = await fetch(location.pathname, { method: 'POST', headers, body: JSON.stringify(body) });
  const result = await response.json().catch(() => undefined);
  if (!result) throw new Error('Expected a GraphQL response, got HTTP ' + response.status + '.');
  return { headers: response.headers, result };
}

// A key that was typed in one tab and has run holds for the tabs that still have the placeholder.
function storeKey(headers) {
  const authorization = headers.get('authorization') ?? PLACEHOLDER;
  if (authorization !== PLACEHOLDER) sessionStorage.setItem('petql:authorization', authorization);
}

function headersOf(given) {
  const headers = new Headers(given);
  headers.set('accept', 'application/graphql-response+json, application/json');
  headers.set('content-type', 'application/json');
  const stored = sessionStorage.getItem('petql:authorization');
  if (stored !== null && headers.get('authorization') === PLACEHOLDER) headers.set('authorization', stored);
  return headers;
}
`;

const PLACEHOLDER = 'Bearer YOUR_API_KEY';

/**
 * Runs in the browser, behind GraphiQL's bundle. It is text, since a bundler may add helpers to functions that the browser
 * does not have.
 */
export const EXPLORER_SCRIPT = `
;(async () => {
const PLACEHOLDER = ${JSON.stringify(PLACEHOLDER)};
${COST_WORDS}
${COST_LINE}
${EXPLORER}
})();
`;
