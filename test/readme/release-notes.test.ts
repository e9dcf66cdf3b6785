import { execFileSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { version } from '../../src/common/version.ts';

const ROOT = join(import.meta.dirname, '../..');
const REPOSITORY = 'https://example.test/petql';

test("a release's notes are its section of the changelog, Upgrading, and its commits", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'petql-release-'));
  const cwd = folder.path;
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.test', ...args], { cwd });
  const commit = (message: string) => git('commit', '-q', '--allow-empty', '-m', message);
  const notesOf = (tag: string) =>
    execFileSync(join(ROOT, '.github/release-notes.sh'), [tag, REPOSITORY], { cwd, encoding: 'utf8' });

  git('init', '-q');
  cpSync(join(ROOT, 'CHANGELOG.md'), join(cwd, 'CHANGELOG.md'));
  git('add', '.');
  commit('feat: begin');
  git('tag', 'v0.1.0');
  expect(notesOf('v0.1.0')).not.toContain('begin');
  commit('fix(http): mend a thing');
  git('tag', `v${version}`);
  commit('feat: go on');

  const notes = notesOf(`v${version}`);
  expect(notes.match(/^## .*$/gm)).toEqual([`## ${version}`, '## Upgrading', '## Commits']);
  expect(notes.slice(notes.indexOf('## Commits'))).toBe(
    `## Commits\n\n- fix(http): mend a thing\n\n[All changes](${REPOSITORY}/compare/v0.1.0...v${version})\n`,
  );
  const links = [...notes.matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
  expect(links.filter((link) => !link.startsWith(`${REPOSITORY}/`))).toEqual([]);
  expect(links).toContain(`${REPOSITORY}/blob/v${version}/CHANGELOG.md#upgrading`);
});
