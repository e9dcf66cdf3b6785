/** Runs in the browser, behind the bundle: the editor asks for its workers by label, the page holds the options. */
export const START_SCRIPT = `
;(async () => {
  const base = new URL('.', document.currentScript.src);
  self.MonacoEnvironment = { globalAPI: false, getWorkerUrl: (_id, label) => new URL(label + '.js', base).href };
  const options = JSON.parse(document.getElementById('graphiql-options').textContent);

  // GraphiQL starts its editors without the variables of the first tab. On a later visit it opens one more tab, unless
  // a stored one holds just what the editors start with. So they start with what the open tab holds.
  const { query, variables } = storedTab() ?? options.defaultTabs[0];
  const linkedQuery = new URLSearchParams(location.search).get('query') ?? query;
  if (linkedQuery === query) Object.assign(options, { initialQuery: query ?? '', initialVariables: variables ?? '' });

  // The editor measures its font once. In another font's measures, the cursor would stand beside the text.
  await document.fonts.load('15px "Fira Code"').catch(() => undefined);
  YogaGraphiQL.renderYogaGraphiQL(document.getElementById('root'), options);

  function storedTab() {
    try {
      const { tabs, activeTabIndex } = JSON.parse(localStorage.getItem('graphiql:tabState'));
      return tabs[activeTabIndex];
    } catch {
      return undefined;
    }
  }
})();
`;

/**
 * Stands behind GraphiQL's style. Its tabs can be dragged, and when fonts or the window change their size, they get a
 * wrong place to be dragged to. They would jump there as soon as they are pressed, away from under the click.
 */
export const START_STYLE = `
.graphiql-tab { transform: none !important; }
`;
