import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { firefoxPath, startFirefox } from '../support/firefox.ts';
import { startGateway } from '../support/start-gateway.ts';
import { PATIENCE } from './graphiql-page.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const EDITOR = "document.querySelector('.graphiql-query-editor .view-lines')?.innerText.replaceAll('\\u00a0', ' ')";
const COST = "document.querySelector('#cost')?.textContent";

// One start alone: with site data it is as in Chromium.
test.skipIf(firefoxPath === undefined)(
  'in a Firefox that blocks site data GraphiQL and the quota page work',
  async () => {
    await using gateway = await startGateway({
      gateway: { graphiqlKey: 'demo-free', graphiqlBadDays: true, admin: true },
    });
    await using page = await startFirefox({ blocksSiteData: true });
    await page.setViewport(640, 400);
    await page.goto(`${gateway.endpoint}?bad-days`);
    await expect.poll(() => page.evaluate(EDITOR), PATIENCE).toContain('query SavingQuota');
    const problem = '(() => { try { sessionStorage; } catch ({ name }) { return name; } })()';
    expect(await page.evaluate(problem)).toBe('SecurityError');
    const height = "document.querySelector('.graphiql-query-editor .graphiql-editor').clientHeight";
    expect(await page.evaluate(height)).toBeGreaterThan(100);
    await page.evaluate("document.querySelector('.graphiql-execute-button').click()");
    await expect.poll(() => page.evaluate(COST), PATIENCE).toMatch(/^UNAUTHENTICATED · 1 call · 0 saved/);

    await page.goto(`${gateway.adminOrigin}/quota`);
    await gateway.query('{ pets { id } }', { headers: { 'cache-control': 'no-cache' } });
    await expect.poll(() => page.evaluate('document.body.innerText'), PATIENCE).toContain('1 of 1,000 used');
    await page.run(AXE);
    expect(await page.evaluate('axe.run().then(({ violations }) => violations.map(({ id }) => id))')).toEqual([]);
    expect(page.complaints).toEqual([]);
  },
);
