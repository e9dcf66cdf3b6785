import { readFileSync } from 'node:fs';

/** Scripts that share one scope, in this order. */
const SCRIPTS = ['cost-words.js', 'cost-line.js', 'explorer.js'];

/**
 * Runs in the browser, behind GraphiQL's bundle. `npm run build` puts the text in place of this module: a bundle of petql has no
 * files beside it.
 */
export const EXPLORER_SCRIPT = `
;(() => {
${SCRIPTS.map((name) => readFileSync(new URL(`page/${name}`, import.meta.url), 'utf8')).join('\n')}
})();
`;
