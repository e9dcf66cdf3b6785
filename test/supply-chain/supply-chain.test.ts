import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import lock from '../../package-lock.json' with { type: 'json' };
import packageJson from '../../package.json' with { type: 'json' };

/** Those that ask for no more than to be named. */
const LICENCES = new Set(['0BSD', 'Apache-2.0', 'BlueOak-1.0.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT']);

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly license?: string;
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}

const locked = Object.entries<Locked>(lock.packages).filter(([path]) => path !== '');
const inProduction = locked.filter(([, { dev }]) => !dev);
const pinned = { ...packageJson.dependencies, ...packageJson.optionalDependencies };
const names = (packages: typeof locked) => packages.map(([path]) => path);

describe('what is installed', () => {
  test('is held to a SHA-512 of each package, which npm ci checks, and comes from the registry', () => {
    expect(locked.length).toBeGreaterThan(100);
    expect(names(locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')))).toEqual([]);
    const elsewhere = ({ resolved = '' }: Locked) => /^(?:git|file|http:)/.test(resolved);
    expect(names(locked.filter(([, one]) => elsewhere(one)))).toEqual([]);
  });

  test('runs no script while it is installed, but for the pinned Node of developers', () => {
    const scripts = locked.filter(([, { hasInstallScript }]) => hasInstallScript);
    const approved = Object.keys(packageJson.allowScripts).map((name) => `node_modules/${name}`);
    expect(approved).toEqual(expect.arrayContaining(names(scripts)));
    expect(scripts.filter(([, { dev }]) => !dev)).toEqual([]);
  });

  test('may be used by anybody for anything: every production package has a permissive licence', () => {
    expect(inProduction.length).toBeGreaterThan(Object.keys(packageJson.dependencies).length);
    expect(names(inProduction.filter(([, { license = '' }]) => !LICENCES.has(license)))).toEqual([]);
  });
});

describe('production dependencies', () => {
  test('are pinned to one version each', () => {
    expect(Object.values(pinned).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });

  test('are these: a new one needs a reason in its commit', () => {
    expect(Object.keys({ ...pinned, ...packageJson.peerDependencies }).toSorted()).toEqual([
      '@graphql-yoga/render-graphiql',
      '@opentelemetry/api',
      '@pothos/core',
      'bottleneck',
      'dataloader',
      'graphql',
      'graphql-yoga',
      'ioredis',
      'leven',
      'lru-cache',
      'pino',
      'prom-client',
      'undici',
      'zod',
    ]);
  });
});

describe('workflows', () => {
  const read = (file: string) => parse(readFileSync(new URL(`../../.github/${file}`, import.meta.url), 'utf8'));
  const commandsOf = ({ steps }: { readonly steps: readonly { readonly run?: string }[] }) =>
    steps.flatMap(({ run }) => run ?? []);

  test('run what a developer runs, before a release too', () => {
    const { jobs } = read('workflows/release.yml');
    for (const { check } of [jobs, read('workflows/ci.yml').jobs]) expect(commandsOf(check)).toContain('.ci/run');
    expect([jobs.npm.needs, jobs.image.needs]).toEqual(['check', 'check']);
  });

  test('publish with provenance, without a token of npm, for two architectures', () => {
    const { permissions, jobs } = read('workflows/release.yml');
    expect(permissions).toEqual({ contents: 'read' });
    expect(jobs.npm.permissions['id-token']).toBe('write');
    expect(commandsOf(jobs.npm).join()).toContain('npm publish --provenance');
    const build = jobs.image.steps.at(-1).with;
    expect(build).toMatchObject({ platforms: 'linux/amd64,linux/arm64', provenance: true, sbom: true });
    expect(readFileSync(new URL('../../.github/workflows/release.yml', import.meta.url), 'utf8')).not.toMatch(
      /secrets\./,
    );
  });

  test('have updates proposed for all that is pinned', () => {
    const { updates } = read('dependabot.yml');
    const ecosystems = updates.map((update: Record<string, string>) => update['package-ecosystem']);
    expect(ecosystems).toEqual(['npm', 'docker', 'github-actions']);
  });
});
