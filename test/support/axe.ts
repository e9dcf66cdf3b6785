import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults, ElementContext } from 'axe-core';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns what axe-core finds on a page, or in a part of it: each rule with the elements that break it. */
export async function violationsOf(page: Page, part: ElementContext = { include: [['html']] }): Promise<string[]> {
  // Not by a script element, which the page's policy forbids.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(
    (context) => (globalThis as unknown as { axe: { run(on: unknown): Promise<AxeResults> } }).axe.run(context),
    part,
  );
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`));
}
