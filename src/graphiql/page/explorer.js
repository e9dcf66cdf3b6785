/**
 * Starts GraphiQL, and sends what it runs.
 *
 * @typedef {{ readonly headers: Headers, readonly body: object }} OperationRequest
 *
 * A tab of GraphiQL, as far as it has been edited.
 *
 * @typedef GraphiqlTab
 * @property {string} [id]
 * @property {string | null | undefined} [query]
 * @property {string | null | undefined} [variables]
 * @property {string | null | undefined} [headers]
 * @property {string | null | undefined} [operationName]
 * @property {string | null | undefined} [response]
 *
 * What the page gives the script.
 *
 * @typedef PageOptions
 * @property {GraphiqlTab[]} defaultTabs
 * @property {GraphiqlTab[]} [badDays]
 * @property {string} defaultHeaders
 * @property {boolean} needsKey
 * @property {number} maxWaitMs
 *
 * What GraphiQL's bundle adds to the page.
 *
 * @typedef {{ renderYogaGraphiQL: (root: HTMLElement | null, props: object) => void }} YogaGraphiQL
 *
 * The part of Monaco, its editor, that finds a text.
 *
 * @typedef {{ lineNumber: number, column: number }} Position
 * @typedef {{ range: { startLineNumber: number, startColumn: number } }} Match
 *
 * @typedef Model
 * @property {(text: string, start: Position, isRegex: boolean, hasCase: boolean, words: null, isCaptured: boolean) => Match | null} findNextMatch
 *
 * @typedef {{ getModel: () => Model | null, setPosition: (at: Position) => void, trigger: (source: string, action: string, payload: undefined) => void }} Editor
 * @typedef {{ editor: { onDidCreateEditor: (use: (editor: Editor) => void) => { dispose: () => void } } }} Monaco
 */

const PLACEHOLDER = 'Bearer YOUR_API_KEY';
// Proxies take lines of 8 KiB, beside the headers of a request.
const MAX_ADDRESS_LENGTH = 4_000;
const { src } = /** @type {HTMLScriptElement} */ (document.currentScript);
const base = new URL('.', src);
Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorkerUrl: (/** @type {string} */ _id, /** @type {string} */ label) => new URL(`${label}.js`, base).href,
  },
});
/** The bad days are a page of the same address with tabs of its own. */
const isBadDay = new URLSearchParams(location.search).has('bad-days');
const options = withNewKeys(withBadDays(JSON.parse(document.getElementById('graphiql-options')?.textContent ?? '')));
const session = sessionOfTab();
const storage = isBadDay ? storageBelow('bad-days:') : session;
const { monaco } = /** @type {typeof globalThis & { monaco: Monaco }} */ (globalThis);
// Tab leaves an editor, as it leaves any other field. What the first editor toggles holds for all.
const firstCreated = monaco.editor.onDidCreateEditor((editor) => {
  firstCreated.dispose();
  setTimeout(() => editor.trigger('petql', 'editor.action.toggleTabFocusMode', undefined));
});
const costLine = new CostLine({ dryRun, maxWaitMs: options.maxWaitMs });
/** The document that the editor showed last, and how many operations it has. */
let edited = { query: '', operations: 0 };
/** @type {GraphiqlTab} */
let openTab = {};
void start();

async function start() {
  const linked = linkedTab();
  const stored = storedTab();
  const isLink = linked && !(stored && isSame(linked, stored));
  // GraphiQL opens one more tab on a reload, unless its editors start with what a stored tab holds.
  const tab = (isLink ? linked : stored) ?? options.defaultTabs[0] ?? {};
  const { query, variables, headers } = tab;
  const examples = options.defaultTabs.filter((example) => !isLink || example.query !== query);
  // The document of a link that names its operation has several.
  edited = { query: query ?? '', operations: linked?.operationName ? 2 : 1 };
  if (linked?.operationName) openOperation(linked.operationName);

  // The editor measures its font once. In another font's measures, the cursor would stand beside the text.
  await document.fonts.load('15px "Fira Code"').catch(() => undefined);
  const { YogaGraphiQL } = /** @type {typeof globalThis & { YogaGraphiQL: YogaGraphiQL }} */ (globalThis);
  YogaGraphiQL.renderYogaGraphiQL(document.getElementById('root'), {
    ...options,
    defaultTabs: isLink ? [linked, ...examples] : examples,
    initialQuery: query ?? '',
    initialVariables: variables ?? '',
    initialHeaders: headers ?? '',
    ...(linked?.variables && { defaultEditorToolsVisibility: 'variables' }),
    // What is typed, API keys too, stays in this browser tab.
    storage,
    fetcher,
    onEditQuery,
    onTabChange,
  });
  costLine.update(undefined, operationOf(tab));
}

/**
 * What a link asks for; undefined where the address has no query.
 *
 * @returns {GraphiqlTab & { query: string } | undefined}
 */
function linkedTab() {
  const params = new URLSearchParams(location.search);
  const query = params.get('query');
  if (!query) return undefined;
  const { variables } = options.defaultTabs.find((tab) => tab.query === query) ?? {};
  // A link has no headers. An example that was edited keeps its own, such as the key of a bad day.
  const name = firstName(query);
  const example = options.defaultTabs.find((tab) => name !== undefined && firstName(tab.query) === name);
  const headers = example?.headers ?? options.defaultHeaders;
  const operationName = params.get('operationName');
  return { query, variables: params.get('variables') ?? variables, operationName, headers };
}

/** @param {string | null | undefined} query */
function firstName(query) {
  return /^(?:query|mutation)\s+(\w+)/m.exec(query ?? '')?.[1];
}

/**
 * Puts the cursor of the new editor into an operation: GraphiQL runs the one at the cursor.
 *
 * @param {string} name
 */
function openOperation(name) {
  if (!/^[_a-z]\w*$/i.test(name)) return;
  const created = monaco.editor.onDidCreateEditor((editor) => {
    // It gets its text after this event.
    setTimeout(() => {
      const from = { lineNumber: 1, column: 1 };
      const operation = `\\b(?:query|mutation)\\s+${name}\\b`;
      const found = editor.getModel()?.findNextMatch(operation, from, true, true, null, false);
      if (!found) return;
      created.dispose();
      editor.setPosition({ lineNumber: found.range.startLineNumber, column: found.range.startColumn });
    });
  });
}

/**
 * @param {GraphiqlTab} linked
 * @param {GraphiqlTab} stored
 */
function isSame(linked, stored) {
  return linked.query === stored.query && (linked.variables || '') === (stored.variables || '');
}

/**
 * @param {PageOptions} given
 * @returns {PageOptions & { title?: string }}
 */
function withBadDays({ badDays, ...given }) {
  if (!badDays) return { ...given, title: '<h1>petql</h1>' };
  if (isBadDay) return { ...given, defaultTabs: badDays, title: '<a href="?">petql</a> · <h1>bad days</h1>' };
  return { ...given, title: '<h1>petql</h1> · <a href="?bad-days">bad days</a>' };
}

/**
 * Keeps what GraphiQL stores apart from the other page in this browser tab.
 *
 * @param {string} prefix
 */
function storageBelow(prefix) {
  return {
    getItem: (/** @type {string} */ name) => session.getItem(prefix + name),
    setItem: (/** @type {string} */ name, /** @type {string} */ value) => session.setItem(prefix + name, value),
    removeItem: (/** @type {string} */ name) => session.removeItem(prefix + name),
    clear: () => session.clear(),
    get length() {
      return session.length;
    },
  };
}

/**
 * The storage of this browser tab, or one that ends with the page: browsers that block the data of sites throw.
 *
 * @returns {Pick<Storage, 'clear' | 'getItem' | 'length' | 'removeItem' | 'setItem'>}
 */
function sessionOfTab() {
  try {
    return sessionStorage;
  } catch {
    /** @type {Map<string, string>} */
    const items = new Map();
    return {
      getItem: (name) => items.get(name) ?? null,
      setItem: (name, value) => void items.set(name, value),
      removeItem: (name) => void items.delete(name),
      clear: () => items.clear(),
      get length() {
        return items.size;
      },
    };
  }
}

/**
 * Each visitor creates a pet, and nobody gets the one of another.
 *
 * @param {PageOptions} given
 */
function withNewKeys(given) {
  const key = Array.from(crypto.getRandomValues(new Uint32Array(2)), (part) => part.toString(36)).join('');
  for (const tab of given.defaultTabs) tab.variables = tab.variables?.replace('NEW_KEY', `momo-${key}`);
  return given;
}

/** @returns {GraphiqlTab | undefined} */
function storedTab() {
  try {
    const { tabs, activeTabIndex } = JSON.parse(storage.getItem('graphiql:tabState') ?? '');
    return tabs[activeTabIndex];
  } catch {
    return undefined;
  }
}

/**
 * @param {string} query
 * @param {{ definitions: { kind: string }[] } | undefined} parsed
 */
function onEditQuery(query, parsed) {
  const operations = parsed?.definitions.filter(({ kind }) => kind === 'OperationDefinition').length ?? 0;
  edited = { query, operations };
  writeAddress();
}

/** So that a link to this page shows what it shows, and a reload too. A longer document is in the storage alone. */
function writeAddress() {
  const { variables, operationName } = openTab;
  const { query, operations } = edited;
  const url = new URL(location.href);
  const params = { query, variables, operationName: operations > 1 ? operationName : undefined };
  for (const [name, value] of Object.entries(params)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  if (url.href.length > MAX_ADDRESS_LENGTH) for (const name of Object.keys(params)) url.searchParams.delete(name);
  history.replaceState({}, '', url);
}

/** @param {{ tabs: GraphiqlTab[], activeTabIndex: number }} state */
function onTabChange({ tabs, activeTabIndex }) {
  const tab = tabs[activeTabIndex];
  if (!tab) return;
  openTab = tab;
  costLine.update(tab.id, operationOf(tab), tab.response);
  // GraphiQL reports the document of another tab a moment later.
  if (tab.query === edited.query) writeAddress();
}

/**
 * @param {GraphiqlTab} tab
 * @returns {TabOperation}
 */
function operationOf({ query, variables, headers, operationName }) {
  const operations = edited.query === query ? edited.operations : 1;
  // GraphiQL names the only operation sooner or later.
  const name = operations > 1 ? (operationName ?? undefined) : undefined;
  const key = JSON.stringify([query, variables || '', name]);
  return { key, request: operations > 0 ? requestOf({ query, variables, headers, operationName: name }) : undefined };
}

/**
 * Undefined where something is no JSON, or where the run would have no API key.
 *
 * @param {GraphiqlTab} tab
 * @returns {OperationRequest | undefined}
 */
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

/** @param {OperationRequest} request */
async function dryRun({ headers, body }) {
  headers.set('petql-dry-run', '1');
  // With HTTP 200 for an invalid operation: a browser logs any 400 as an error of the page.
  headers.set('accept', 'application/json');
  const { result } = await send({ headers, body });
  return result.extensions?.petql?.dryRun;
}

/**
 * @param {{ query: string, variables?: unknown, operationName?: string | null }} operation
 * @param {{ headers?: Record<string, string> }} [given]
 */
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

/**
 * @param {OperationRequest} request
 * @returns {Promise<{ headers: Headers, result: Result }>}
 */
async function send({ headers, body }) {
  const response = await fetch(location.pathname, { method: 'POST', headers, body: JSON.stringify(body) });
  const result = await response.json().catch(() => undefined);
  if (!result) throw new Error(`Expected a GraphQL response, got HTTP ${response.status}.`);
  return { headers: response.headers, result };
}

/**
 * A key that was typed in one tab and has run holds for the tabs that still have the placeholder.
 *
 * @param {Headers} headers
 */
function storeKey(headers) {
  const authorization = headers.get('authorization') ?? PLACEHOLDER;
  if (authorization !== PLACEHOLDER) session.setItem('petql:authorization', authorization);
}

/** @param {Record<string, string>} [given] */
function headersOf(given) {
  const headers = new Headers(given);
  headers.set('accept', 'application/graphql-response+json, application/json');
  headers.set('content-type', 'application/json');
  const stored = session.getItem('petql:authorization');
  if (stored !== null && headers.get('authorization') === PLACEHOLDER) headers.set('authorization', stored);
  return headers;
}
