import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const readText = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const page = readText('src/TROUBLESHOOTING.md');
const sections = page.split(/^## /m).slice(1);
const titleOf = (section: string) => section.split('\n', 1)[0] ?? '';

const source = globSync('src/**/*.ts', { cwd: ROOT }).map(readText).join('\n');
const codes = unionOf('src/common/errors.ts', 'ErrorCode');
const staleReasons = unionOf('src/common/usage.ts', 'StaleReason');
const metrics = readText('src/admin/metrics.ts');

type Kind = 'code' | 'log line' | 'metric';
/** What an operator sees in each case: no error code says that data comes from several replicas, and no log line that it is stale. */
const SEEN: Readonly<Record<string, readonly Kind[]>> = {
  'I got RATE_LIMITED': ['code', 'log line', 'metric'],
  'Data is stale': ['code', 'metric'],
  'I run several replicas': ['log line', 'metric'],
  'Redis is unavailable': ['code', 'log line', 'metric'],
  'Other programs use my key': ['code', 'log line', 'metric'],
  'The pet API fails': ['code', 'log line', 'metric'],
  "A create's outcome is unknown": ['code', 'log line', 'metric'],
  'I upgrade': ['log line', 'metric'],
};

test('has a short section for each of eight questions, which README links to', () => {
  expect(sections.map(titleOf)).toEqual(Object.keys(SEEN));
  for (const section of sections) expect(section.trim().split('\n').length).toBeLessThanOrEqual(25);
  const links = readText('README.md').match(/^- \[.+\]\(src\/TROUBLESHOOTING\.md#/gm);
  expect(links).toHaveLength(sections.length);
});

test.each(sections.map((section) => [titleOf(section), section]))(
  '%s: names what is seen, as petql names it',
  (title, section) => {
    const seen = namesIn(matchesOf(section, /^- \*\*See:\*\* (.+)$/gm).join('\n'));
    const kinds = Object.entries(seen).filter(([, names]) => names.length > 0);
    expect(kinds.map(([kind]) => kind)).toEqual(SEEN[title]);

    const named = namesIn(section);
    expect(named.code.filter((code) => ![...codes, ...staleReasons].includes(code))).toEqual([]);
    expect(named['log line'].filter((line) => !isLogged(line))).toEqual([]);
    expect(named.metric.filter((metric) => !isCounted(metric))).toEqual([]);
  },
);

test('finds names that petql does not have', () => {
  expect(codes).toContain('RATE_LIMITED');
  expect(staleReasons).toContain('PAUSED');
  expect(['the pet API is fine', 'a write had no'].filter(isLogged)).toEqual([]);
  expect(['petql_calls_total', 'petql_paused_keys{status="429"}'].filter(isCounted)).toEqual([]);
});

function namesIn(text: string): Readonly<Record<Kind, string[]>> {
  return {
    code: matchesOf(text, /`([A-Z]+(?:_[A-Z]+)*)`/g),
    'log line': matchesOf(text, /log line (?:that ends in )?`([^`]+)`/g),
    metric: matchesOf(text, /`(petql_[^`]+)`/g),
  };
}

/** The members of a union of strings. */
function unionOf(file: string, type: string): string[] {
  const [, members = ''] = new RegExp(`export type ${type} =([^;]+);`).exec(readText(file)) ?? [];
  return matchesOf(members, /'([A-Z_]+)'/g);
}

function matchesOf(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, found = '']) => found);
}

/** Whether a string of the source is this line, or a part of it up to a semicolon or from there. */
function isLogged(line: string): boolean {
  return new RegExp(`(?:['"\`]|; )${line}(?:['"\`]|;)`).test(source);
}

/** Whether a metric has this name and these labels. */
function isCounted(metric: string): boolean {
  const [name = '', ...labels] = metric.match(/\w+(?==|\{|$)/g) ?? [];
  return (
    labels.every((label) => new RegExp(`'${name}',[^;]*'${label}'`).test(metrics)) && metrics.includes(`'${name}',`)
  );
}
