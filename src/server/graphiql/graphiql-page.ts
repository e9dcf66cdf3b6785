import { EXAMPLE_OPERATIONS } from './example-operations.ts';
import type { ExampleOperation } from './example-operations.ts';

/**
 * Returns the page around GraphiQL, which loads everything from petql.
 *
 * @param apiKey empty where requests need none.
 */
export function graphiqlPage(assetsPath: string, apiKey: string | undefined): string {
  const headersOf = ({ headers }: Pick<ExampleOperation, 'headers'>) =>
    JSON.stringify(
      { ...(apiKey === '' ? {} : { Authorization: `Bearer ${apiKey ?? 'YOUR_API_KEY'}` }), ...headers },
      null,
      2,
    );
  const options = {
    title: 'petql',
    logo: PAW,
    defaultHeaders: headersOf({}),
    defaultTabs: EXAMPLE_OPERATIONS.map((example) => ({ ...example, headers: headersOf(example) })),
    defaultEditorToolsVisibility: 'headers',
    shouldPersistHeaders: true,
    showPersistHeadersSettings: false,
  };
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>petql</title>
    <link rel="icon" href="${FAVICON}" />
    <link rel="stylesheet" href="${assetsPath}/graphiql.css" />
  </head>
  <body id="body" class="no-focus-outline">
    <noscript>GraphiQL needs JavaScript.</noscript>
    <div id="root"></div>
    <script id="graphiql-options" type="application/json">${jsonInHtml(options)}</script>
    <script src="${assetsPath}/graphiql.js"></script>
  </body>
</html>
`;
}

const PAW =
  '<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32" viewBox="0 0 32 32" aria-hidden="true">' +
  '<g fill="#e10098"><ellipse cx="16" cy="22" rx="7" ry="6"/><circle cx="6" cy="14" r="3"/>' +
  '<circle cx="12" cy="8" r="3"/><circle cx="20" cy="8" r="3"/><circle cx="26" cy="14" r="3"/></g></svg>';

const FAVICON = `data:image/svg+xml,${encodeURIComponent(PAW)}`;

/** Escapes what could end the script element. */
function jsonInHtml(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}
