import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const readText = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const page = readText('src/TROUBLESHOOTING.md');
const sections = page.split(/^## /m).slice(1);
const source = globSync('src/**/*.ts', { cwd: ROOT }).map(readText).join('\n');
/** Inline code. */
const words = [...page.matchAll(/`([^`\n]+)`/g)].map(([, text = '']) => text);

test('has a short section for each of eight questions', () => {
  expect(sections).toHaveLength(8);
  for (const section of sections) expect(section.trim().split('\n').length).toBeLessThanOrEqual(25);
});

test('README links to each section', () => {
  const links = readText('README.md').match(/^- \[.+\]\(src\/TROUBLESHOOTING\.md#/gm);
  expect(links).toHaveLength(sections.length);
});

test('names codes, metrics and log events that the source has', () => {
  const literals = words.filter((word) => /^(?:[A-Z][A-Z_]{3,}|petql_\w+|[A-Za-z\d][\w %:]* [\w %:]+)$/.test(word));
  expect(literals.length).toBeGreaterThan(20);
  const missing = literals.filter((word) => word !== 'petql simulate' && !source.includes(word));
  expect(missing).toEqual([]);
});
