/**
 * An operation of a tab: a key that names it, and the request of a dry run, or undefined where that cannot be sent.
 *
 * @typedef {{ readonly key: string, readonly request: OperationRequest | undefined }} TabOperation
 */

// GraphiQL reports an edit of the document after 100 ms without another: 300 ms together.
const REST_MS = 200;
const LONG_RUN_MS = 1_000;

/**
 * Says what the last run of the open tab cost. Once its operation is edited, says what a run would cost, by a dry run: one at a
 * time, and none for an operation whose cost it already shows.
 */
class CostLine {
  #element = document.createElement('p');
  /**
   * Resolves with extensions.petql.dryRun, or undefined where the operation is invalid.
   *
   * @type {(request: OperationRequest) => Promise<DryRun | undefined>}
   */
  #dryRun;
  /** @type {number} */
  #maxWaitMs;
  /**
   * By GraphiQL's ids.
   *
   * @type {Map<string, Tab>}
   */
  #tabs = new Map();
  #openTab = newTab();
  /**
   * Of the open tab.
   *
   * @type {TabOperation}
   */
  #operation = { key: '', request: undefined };
  #isDryRunning = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #resting;

  /** @param {{ dryRun: (request: OperationRequest) => Promise<DryRun | undefined>, maxWaitMs: number }} options */
  constructor({ dryRun, maxWaitMs }) {
    this.#dryRun = dryRun;
    this.#maxWaitMs = maxWaitMs;
    this.#element.id = 'cost';
    this.#element.setAttribute('role', 'status');
  }

  /**
   * Another tab is open, or something in it has changed.
   *
   * @param {string | undefined} id
   * @param {TabOperation} operation
   * @param {string | null} [response]
   */
  update(id, operation, response) {
    // The first tab has no id until something changes in it, so that its operation names it.
    const tab = this.#tabs.get(id ?? operation.key) ?? this.#tabs.get(operation.key) ?? newTab();
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
    const waiting = setTimeout(() => void this.#explainWait(tab, operation), LONG_RUN_MS);

    return (/** @type {string} */ text) => {
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
    const tab = this.#openTab;
    const { key, request } = this.#operation;
    // The end of the dry run under way looks for changes.
    if (this.#isDryRunning || !request) return;
    const dryRun = await this.#ask(request);
    Object.assign(tab, { estimate: dryRun ? describeDryRun(dryRun) : '', estimateKey: key });
    this.#show();
    this.#rest();
  }

  /**
   * @param {Tab} tab
   * @param {TabOperation} operation
   */
  async #explainWait(tab, { request }) {
    if (this.#isDryRunning || !request) return;
    const dryRun = await this.#ask(request);
    this.#rest();
    if (tab.progress === undefined) return;
    const isQuotaUsed = dryRun?.fits === false;
    tab.progress = isQuotaUsed ? `waiting for the quota, up to ${span(this.#maxWaitMs)}` : 'waiting for the pet API';
    this.#show();
  }

  /** @param {OperationRequest} request */
  async #ask(request) {
    this.#isDryRunning = true;
    const dryRun = await this.#dryRun(request).catch(() => undefined);
    this.#isDryRunning = false;
    return dryRun;
  }

  #show() {
    const container = document.querySelector('.graphiql-response');
    if (!container) {
      requestAnimationFrame(() => this.#show());
      return;
    }
    if (!this.#element.isConnected) container.append(this.#element);

    const tab = this.#openTab;
    const { key, request } = this.#operation;
    const hasRun = tab.progress !== undefined || tab.ranKey === key;
    const estimate = request ? tab.estimate : '';
    const isResting = !hasRun && request !== undefined && tab.estimateKey !== key;
    // The last text stays while somebody types.
    if (!isResting) tab.shown = tab.progress ?? (hasRun ? tab.ran : estimate);
    this.#element.textContent = tab.shown;
    this.#element.classList.toggle('estimate', !hasRun && tab.shown !== '' && tab.shown === tab.estimate);
    // A screen reader says what a run has cost, and nothing in the middle of typing.
    this.#element.setAttribute('aria-live', hasRun ? 'polite' : 'off');
  }
}

/**
 * What the last run, its progress and the last dry run said, of which operations; and the text of the result.
 *
 * @typedef Tab
 * @property {string} ran
 * @property {string | undefined} ranKey
 * @property {string | undefined} progress
 * @property {string} estimate
 * @property {string | undefined} estimateKey
 * @property {string} shown
 * @property {string | null | undefined} response
 * @property {boolean} isAnswered whether the next text of the result is that of a run
 */

/** @returns {Tab} */
function newTab() {
  return {
    ran: '',
    ranKey: undefined,
    progress: undefined,
    estimate: '',
    estimateKey: undefined,
    shown: '',
    response: undefined,
    isAnswered: false,
  };
}
