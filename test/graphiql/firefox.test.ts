import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { firefoxPath, startFirefox } from '../support/firefox.ts';
import { startGateway } from '../support/start-gateway.ts';
import { PATIENCE } from './graphiql-page.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const EDITOR = "document.querySelector('.graphiql-query-editor .view-lines')?.innerText.replaceAll('\\u00a0', ' ')";
const COST = "document.querySelector('#cost')?.textContent";

describe.skipIf(firefoxPath === undefined)('in Firefox', () => {
  test.each([
    ['with site data', false],
    ['that blocks site data', true],
  ])('%s GraphiQL shows and runs an operation, and bad days', async (_name, blocksSiteData) => {
    await using gateway = await startGateway({ gateway: { graphiqlKey: 'demo-free', graphiqlBadDays: true } });
    await using page = await startFirefox({ blocksSiteData });
    await page.setViewport(640, 400);
    await page.goto(gateway.endpoint);
    await expect.poll(() => page.evaluate(EDITOR), PATIENCE).toContain('query ListPets');
    const problem = '(() => { try { sessionStorage; } catch ({ name }) { return name; } })()';
    expect(await page.evaluate(problem)).toBe(blocksSiteData ? 'SecurityError' : null);
    const height = "document.querySelector('.graphiql-query-editor .graphiql-editor').clientHeight";
    expect(await page.evaluate(height)).toBeGreaterThan(100);
    await expect.poll(() => page.evaluate(COST), PATIENCE).toMatch(/^would cost 1/);
    await page.evaluate("document.querySelector('.graphiql-execute-button').click()");
    await expect.poll(() => page.evaluate(COST), PATIENCE).toMatch(/^1 call · 0 saved · fresh/);

    await page.goto(`${gateway.endpoint}?bad-days`);
    await expect.poll(() => page.evaluate(EDITOR), PATIENCE).toContain('query SavingQuota');
    expect(page.complaints).toEqual([]);
  });

  test('axe-core finds nothing on the quota page, which follows petql', async () => {
    await using gateway = await startGateway({ gateway: { admin: true } });
    await using page = await startFirefox();
    await page.goto(`${gateway.adminOrigin}/quota`);
    await gateway.query('{ pets { id } }');
    await expect.poll(() => page.evaluate('document.body.innerText'), PATIENCE).toContain('1 of 1,000 used');
    await page.run(AXE);
    expect(await page.evaluate('axe.run().then(({ violations }) => violations.map(({ id }) => id))')).toEqual([]);
    expect(page.complaints).toEqual([]);
  });
});
