import { expect, test } from 'vitest';
import { violationsOf } from '../support/axe.ts';
import { startBrowser } from '../support/browser.ts';
import { startEmbedded, startGateway } from '../support/start-gateway.ts';

const LIST = 'query Listing { pets { id } }';
const FRESH = { cacheControl: 'no-cache' } as const;

test('the report says which operations and clients used the quota of a key, writes and hits too', async () => {
  await using gateway = await startEmbedded({ petApiKey: 'demo-free' });
  await gateway.execute({ document: LIST, client: 'web 1.4' });
  await gateway.execute({ document: LIST, client: 'web 1.4' });
  await gateway.execute({ document: LIST, client: 'job', ...FRESH });
  const create = 'mutation Adding { createPet(input: { name: "Momo", categoryId: "1" }) { pet { id } } }';
  await gateway.execute({ document: create, client: 'job' });
  await gateway.execute({ document: '{ pets { id } }', ...FRESH });

  const [report] = await gateway.quotaReport();
  expect(report).toMatchObject({ callsMade: 4, callsSaved: 1, isRejected: false, pausedUntil: null });
  const { operations, clients } = report?.consumers.lastHour ?? {};
  expect(operations).toEqual([
    { name: 'Listing', callsMade: 2, callsSaved: 1, refused: 0, share: 0.5 },
    { name: 'Adding', callsMade: 1, callsSaved: 0, refused: 0, share: 0.25 },
    { name: '(unnamed)', callsMade: 1, callsSaved: 0, refused: 0, share: 0.25 },
  ]);
  expect(clients?.map(({ name, callsMade }) => [name, callsMade])).toEqual([
    ['job', 2],
    ['web 1.4', 1],
    ['(unnamed)', 1],
  ]);
  expect(report?.consumers.today).toEqual(report?.consumers.lastHour);
  expect(JSON.parse(JSON.stringify(report))).toEqual(report);
});

test('what is refused counts for its operation, and an hour later only for the day', async () => {
  let nowMs = Date.parse('2026-11-21T12:00:00Z');
  const clock = { now: () => nowMs, elapsed: () => nowMs - 1_000 };
  const keys = { tiny: { perMinute: 1, perDay: 50 } };
  await using gateway = await startEmbedded({ petApiKey: 'tiny', plan: '1/50', clock }, { keys });
  const once = () => gateway.execute({ document: LIST, waitMs: 0, ...FRESH });
  await once();
  expect((await once()).errors?.[0]?.extensions.code).toBe('RATE_LIMITED');
  const seen = async () => (await gateway.quotaReport())[0]?.consumers;
  expect((await seen())?.lastHour.operations).toMatchObject([{ callsMade: 1, refused: 1 }]);

  nowMs += 3_600_000;
  expect(await seen()).toMatchObject({ lastHour: { operations: [] }, today: { operations: [{ callsMade: 1 }] } });
  nowMs = Date.parse('2026-11-22T00:00:01Z');
  expect((await seen())?.today.operations).toEqual([]);
});

test('names that clients make up are bounded: the first hundred count, the rest are others', async () => {
  await using gateway = await startEmbedded({ petApiKey: 'demo-enterprise', maxAgeMs: 600_000 });
  for (let name = 0; name < 150; name += 1) {
    await gateway.execute({ document: `query N${name} { pets { id } }`, client: 'x'.repeat(10_000) });
  }
  const [report] = await gateway.quotaReport();
  const { operations = [], clients = [] } = report?.consumers.today ?? {};
  expect(operations).toHaveLength(101);
  expect(operations.find(({ name }) => name === '(others)')).toMatchObject({ callsSaved: 50 });
  expect(clients.map(({ name }) => name.length)).toEqual([100]);
});

test('/quota shows them as a picture that needs no color, and as JSON where a program asks for it', async ({
  skip,
}) => {
  const browser = await startBrowser();
  if (!browser) return skip('no browser starts on this machine');
  try {
    await using gateway = await startGateway({ gateway: { admin: true } });
    const headers = (name: string) => ({ 'apollographql-client-name': name, 'cache-control': 'no-cache' });
    for (const name of ['web', 'web', 'web', 'job', '<b>&', 'four', 'five', 'six']) {
      await gateway.query(`query Of_${name.replaceAll(/\W/g, '')} { pets { id } }`, { headers: headers(name) });
    }

    const json = await fetch(`${gateway.adminOrigin}/quota`, { headers: { accept: 'application/json' } });
    expect(json.headers.get('content-type')).toBe('application/json');
    expect(((await json.json()) as any[])[0].consumers.today.clients[0]).toMatchObject({ name: 'web', callsMade: 3 });
    const metrics = await (await fetch(`${gateway.adminOrigin}/metrics`)).text();
    expect(metrics).not.toMatch(/web|Of_/);

    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [1_280, 390]) {
        const page = await browser.newPage({ viewport: { width, height: 844 }, colorScheme });
        await page.goto(`${gateway.adminOrigin}/quota`);
        const shown = await page.locator('figure', { hasText: 'Clients, today' }).innerText();
        expect(shown).toMatch(/1 web 38 % 3 made, 0 saved/);
        expect(shown).toMatch(/<b>&/);
        expect(shown).toMatch(/5 2 others 25 % 2 made/);
        expect(await violationsOf(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      }
    }
  } finally {
    await browser.close();
  }
});

test('80 % and all of a day are one line each, with who used most, and when it ends', async () => {
  const keys = { tiny: { perMinute: 100, perDay: 10 } };
  await using gateway = await startEmbedded({ petApiKey: 'tiny', plan: '100/10' }, { keys });
  const lines = () => gateway.logLines.filter(({ msg }) => String(msg).includes('of the day'));
  const call = (name: string) =>
    gateway.execute({ document: `query ${name} { pets { id } }`, client: 'job', waitMs: 0, ...FRESH });
  for (let calls = 0; calls < 7; calls += 1) await call('Nightly');
  expect(lines()).toEqual([]);
  await call('Listing');
  expect(lines()).toMatchObject([
    { level: 40, msg: '80 % of the day is used', used: 8, limit: 10, operation: 'Nightly', client: 'job' },
  ]);
  expect(Date.parse(String(lines()[0]?.['exhaustedAt']))).toBeGreaterThan(Date.now());
  for (let calls = 0; calls < 5; calls += 1) await call('Listing');
  expect(lines().map(({ msg }) => msg)).toEqual(['80 % of the day is used', 'all of the day is used']);
  expect(lines()[1]?.['resetsAt']).toBeTypeOf('string');
});
