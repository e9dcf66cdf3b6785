/** Stands behind GraphiQL's style: the line under the result, and one column on a narrow screen, which scrolls where it is low. */
export const EXPLORER_STYLE = `
/* A low window scrolls. */
body { overflow: auto; }
.graphiql-container { height: max(100dvh, 24rem); }

/* A dragged tab would jump away from under the click after fonts or the window have changed their size. */
.graphiql-tab { transform: none !important; }

/* GraphiQL's own colour has a contrast of 4.3; WCAG asks for 4.5. */
.graphiql-container .graphiql-logo { color: hsl(var(--color-neutral)); white-space: nowrap; }
.graphiql-container .graphiql-logo a { color: inherit; }
.graphiql-container .graphiql-logo h1 { display: inline; margin: 0; font: inherit; }

/* Comments say what to do on a bad day; the editor's own green has a contrast of 3.6. */
.graphiql-container .monaco-editor.vs-dark .mtk8 { color: #8fc27a; }

#cost {
  margin: 0;
  padding: var(--px-8) var(--px-12);
  border-top: 1px solid hsla(var(--color-neutral), var(--alpha-background-heavy));
  font-variant-numeric: tabular-nums;
  text-wrap: balance;
}
#cost:empty { display: none; }
#cost.estimate { font-style: italic; }

@media (max-width: 700px) {
  .graphiql-container { height: max(100dvh, 36rem); flex-direction: column; }
  .graphiql-container .graphiql-sidebar { width: auto; flex-direction: row; padding: var(--px-4) var(--px-8); }
  .graphiql-container .graphiql-main { min-height: 0; }
  .graphiql-container .graphiql-sessions { margin: 0; border-radius: 0; }
  .graphiql-container .graphiql-logo { margin: 0; padding: var(--px-4) var(--px-8); }
  .graphiql-container #graphiql-session { flex-direction: column; min-height: 0; }
  .graphiql-container .graphiql-editors,
  .graphiql-container .graphiql-response { min-height: 0; width: auto; }
  .graphiql-horizontal-drag-bar { display: none; }
  /* More tabs stand behind the edge. */
  .graphiql-container .graphiql-tabs { padding-inline-end: 2rem; mask-image: linear-gradient(to left, transparent, black 2rem); }
  /* The docs cover the editors while they are open. */
  .graphiql-container .graphiql-plugin { flex: 0 0 100% !important; border: 0; }
}

@media (max-width: 480px) {
  /* Beside the editor, the buttons would cover a third of each line. */
  .graphiql-container .graphiql-query-editor { flex-direction: column; }
  .graphiql-container .graphiql-toolbar { flex-direction: row-reverse; inline-size: auto; }
  .graphiql-container { height: max(100dvh, 48rem); }
  /* The way to the bad days and back stands above the tabs. */
  .graphiql-container .graphiql-session-header { flex-wrap: wrap; height: auto; }
  .graphiql-container .graphiql-logo { flex: 0 0 100%; order: -1; padding-block: 0; }
  .graphiql-container .graphiql-logo div { height: 1.5rem; }
  .graphiql-container .graphiql-tabs { flex: 1 1 0; min-width: 0; }
}
`;
