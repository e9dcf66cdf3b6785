/** Runs in the browser: the line under the result. */
export const COST_LINE = String.raw`
// GraphiQL reports an edit of the document after 100 ms without another: 300 ms together.
const REST_MS = 200;
const LONG_RUN_MS = 1_000;

/**
 * Says what the last run of the open tab cost. Once its operation is edited, says what a run would cost, by a dry run: one at a
 * time, and none for an operation whose cost it already shows.
 */
class CostLine {
  #element = document.createElement('p');
  /** Resolves with extensions.petql.dryRun, or undefined where the operation is invalid. */
  #dryRun;
  #maxWaitMs;
  /** By GraphiQL's ids. */
  #tabs = new Map();
  #openTab = newTab();
  /** Of the open tab: a key that names it, and the request of a dry run, or none. */
  #operation = { key: '', request: undefined };
  #isDryRunning = false;
  #resting;

  constructor({ dryRun, maxWaitMs }) {
    this.#dryRun = dryRun;
    this.#maxWaitMs = maxWaitMs;
    this.#element.id = 'cost';
    this.#element.setAttribute('role', 'status');
  }

  /** Another tab is open, or something in it has changed. */
  update(id, operation, response) {
    // The first tab has no id until something changes in it, so that its operation names it.
    const tab = this.#tabs.get(id) ?? this.#tabs.get(operation.key) ?? newTab();
    this.#tabs.delete(operation.key);
    this.#tabs.set(id ?? operation.key, tab);

    if (response && response !== tab.response) {
      // GraphiQL shows its own error, and sends nothing, where headers or variables are no JSON.
      if (!tab.isAnswered) Object.assign(tab, { ran: '', ranKey: undefined });
      tab.isAnswered = false;
    }
    tab.response = response;

    this.#openTab = tab;
    this.#operation = operation;
    this.#show();
    this.#rest();
  }

  /** Returns a function for the end of the run, which takes the text to show. */
  begin() {
    const tab = this.#openTab;
    const operation = this.#operation;
    clearTimeout(this.#resting);
    tab.progress = 'running';
    this.#show();
    const waiting = setTimeout(() => this.#explainWait(tab, operation), LONG_RUN_MS);

    return (text) => {
      clearTimeout(waiting);
      Object.assign(tab, { ran: text, ranKey: operation.key, isAnswered: true, progress: undefined });
      this.#show();
      this.#rest();
    };
  }

  #rest() {
    clearTimeout(this.#resting);
    const { progress, ranKey, estimateKey } = this.#openTab;
    const { key, request } = this.#operation;
    if (!request || progress !== undefined || ranKey === key || estimateKey === key) return;
    this.#resting = setTimeout(() => void this.#estimate(), REST_MS);
  }

  async #estimate() {
    // The end of the dry run under way looks for changes.
    if (this.#isDryRunning) return;
    const tab = this.#openTab;
    const operation = this.#operation;
    const dryRun = await this.#ask(operation);
    Object.assign(tab, { estimate: dryRun ? describeDryRun(dryRun) : '', estimateKey: operation.key });
    this.#show();
    this.#rest();
  }

  async #explainWait(tab, operation) {
    if (this.#isDryRunning || !operation.request) return;
    const dryRun = await this.#ask(operation);
    this.#rest();
    if (tab.progress === undefined) return;
    const isQuotaUsed = dryRun?.fits === false;
    tab.progress = isQuotaUsed ? 'waiting for the quota, up to ' + span(this.#maxWaitMs) : 'waiting for the pet API';
    this.#show();
  }

  async #ask({ request }) {
    this.#isDryRunning = true;
    const dryRun = await this.#dryRun(request).catch(() => undefined);
    this.#isDryRunning = false;
    return dryRun;
  }

  #show() {
    const container = document.querySelector('.graphiql-response');
    if (!container) return requestAnimationFrame(() => this.#show());
    if (!this.#element.isConnected) container.append(this.#element);

    const tab = this.#openTab;
    const { key, request } = this.#operation;
    const hasRun = tab.progress !== undefined || tab.ranKey === key;
    const isResting = !hasRun && request !== undefined && tab.estimateKey !== key;
    // The last text stays while somebody types.
    if (!isResting) tab.shown = tab.progress ?? (hasRun ? tab.ran : request ? tab.estimate : '');
    this.#element.textContent = tab.shown;
    this.#element.classList.toggle('estimate', !hasRun && tab.shown !== '' && tab.shown === tab.estimate);
    // A screen reader says what a run has cost, and nothing in the middle of typing.
    this.#element.setAttribute('aria-live', hasRun ? 'polite' : 'off');
  }
}

/** What the last run, its progress and the last dry run said, of which operations; and the text of the result. */
function newTab() {
  return {
    ran: '',
    ranKey: undefined,
    progress: undefined,
    estimate: '',
    estimateKey: undefined,
    shown: '',
    response: undefined,
    /** Whether the next text of the result is that of a run. */
    isAnswered: false,
  };
}
`;
