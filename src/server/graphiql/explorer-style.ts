/** Stands behind GraphiQL's style: the line under the result, and one column on a narrow screen. */
export const EXPLORER_STYLE = `
/* A dragged tab would jump away from under the click after fonts or the window have changed their size. */
.graphiql-tab { transform: none !important; }

/* GraphiQL's own colour has a contrast of 4.3; WCAG asks for 4.5. */
.graphiql-container .graphiql-logo { color: hsl(var(--color-neutral)); white-space: nowrap; }
.graphiql-container .graphiql-logo a { color: inherit; }

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
  .graphiql-container { height: 100dvh; flex-direction: column; }
  .graphiql-container .graphiql-sidebar { width: auto; flex-direction: row; padding: var(--px-4) var(--px-8); }
  .graphiql-container .graphiql-main { min-height: 0; }
  .graphiql-container .graphiql-sessions { margin: 0; border-radius: 0; }
  .graphiql-container .graphiql-logo { display: none; }
  .graphiql-container #graphiql-session { flex-direction: column; min-height: 0; }
  .graphiql-container .graphiql-editors,
  .graphiql-container .graphiql-response { min-height: 0; width: auto; }
  .graphiql-horizontal-drag-bar { display: none; }
  /* Beside the editor, the buttons would cover a third of each line. */
  .graphiql-container .graphiql-query-editor { flex-direction: column; }
  .graphiql-container .graphiql-toolbar { flex-direction: row-reverse; inline-size: auto; }
  /* More tabs stand behind the edge. */
  .graphiql-container .graphiql-tabs { padding-inline-end: 2rem; mask-image: linear-gradient(to left, transparent, black 2rem); }
  /* The docs cover the editors while they are open. */
  .graphiql-container .graphiql-plugin { flex: 0 0 100% !important; border: 0; }
}
`;
