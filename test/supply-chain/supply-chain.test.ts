import { readdirSync, readFileSync } from 'node:fs';
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

interface Step {
  readonly run?: string;
  readonly uses?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Job {
  readonly needs?: readonly string[];
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps?: readonly Step[];
  readonly uses?: string;
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const readText = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const dockerfile = readText('Dockerfile');
const workflowTexts = readdirSync(new URL('../../.github/workflows', import.meta.url)).map((name) =>
  readText(`.github/workflows/${name}`),
);
const workflow = (name: string): Workflow => parse(readText(`.github/workflows/${name}.yml`));
const [ci, release] = [workflow('ci'), workflow('release')];
const commandsOf = (job: Job | undefined) => job?.steps?.flatMap(({ run }) => run ?? []) ?? [];
const stepsOf = (...workflows: readonly Workflow[]) =>
  workflows.flatMap(({ jobs }) => Object.values(jobs).flatMap(({ steps }) => steps ?? []));

describe('what is installed', () => {
  test('is held to a SHA-512 of each package, which npm ci checks, and comes from the registry', () => {
    expect(locked.length).toBeGreaterThan(100);
    expect(names(locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')))).toEqual([]);
    const registry = 'https://registry.npmjs.org/';
    expect(names(locked.filter(([, { resolved }]) => !resolved?.startsWith(registry)))).toEqual([]);
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
  test('are pinned to one version each, but for the interface of OpenTelemetry, whose global state a process has once', () => {
    const { '@opentelemetry/api': shared, ...others } = pinned;
    expect(Object.values(others).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
    expect(shared).toBe('^1.9.0');
  });

  test('each have a row in CONTRIBUTING with the last release and the reason', () => {
    const rows = readText('.github/CONTRIBUTING.md').matchAll(/^\| `(\S+)` +\| [A-Z]\w+ 20\d\d +\| \w.{9,} \|$/gm);
    const named = [...rows].map(([, name]) => name);
    expect(named).toEqual(Object.keys({ ...pinned, ...packageJson.peerDependencies }).toSorted());
  });
});

describe('Node.js', () => {
  const pinnedNode = packageJson.devDependencies.node;
  const majorOf = (version: string) => version.split('.', 1)[0];

  test('is of one line for developers, the image, the development container and continuous integration', () => {
    const tags = [...dockerfile.matchAll(/^FROM node:(\d+\.\d+\.\d+)-/gm)].map(([, tag = '']) => tag);
    const [, inContainer = ''] =
      /"image": "node:(\d+\.\d+\.\d+)-/.exec(readText('.devcontainer/devcontainer.json')) ?? [];
    const inWorkflows = stepsOf(ci, release).flatMap((step) => step.with?.['node-version'] ?? []);
    expect(tags).toHaveLength(2);
    expect(inWorkflows.length).toBeGreaterThan(3);
    for (const version of [...tags, inContainer, ...inWorkflows.map(String)]) {
      expect(majorOf(version)).toBe(majorOf(pinnedNode));
    }
  });

  test('of the oldest supported line runs all tests too, and has the types', () => {
    const [, oldest = ''] = /^>=(.+)$/.exec(packageJson.engines.node) ?? [];
    expect(commandsOf(ci.jobs['check'])).toContain('.ci/run');
    expect(commandsOf(ci.jobs[`node-${majorOf(oldest)}`])).toContain(`.ci/run ${majorOf(oldest)}`);
    expect(majorOf(packageJson.devDependencies['@types/node'])).toBe(majorOf(oldest));
  });
});

describe('what is pinned', () => {
  test('is a commit for each action, with its version beside it', () => {
    const uses = workflowTexts.flatMap((text) => [...text.matchAll(/uses: (.+)$/gm)].map(([, used = '']) => used));
    expect(uses.length).toBeGreaterThan(10);
    const loose = uses.filter((used) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(used));
    expect(loose).toEqual(['./.github/workflows/ci.yml']);
  });

  test('is a tag and a digest for each image that petql is built from', () => {
    const images = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
    expect(images.length).toBeGreaterThan(0);
    for (const image of images) expect(image).toMatch(/^node:\d+\.\d+\.\d+-\w+-slim@sha256:[0-9a-f]{64}$/);
  });

  test('is raised by Dependabot, a week after its release', () => {
    const { updates } = parse(readText('.github/dependabot.yml'));
    const ecosystems = updates.map((update: Record<string, string>) => update['package-ecosystem']);
    expect(ecosystems).toEqual(['npm', 'docker', 'github-actions']);
    for (const { cooldown } of updates) expect(cooldown).toEqual({ 'default-days': 7 });
    expect(readText('.npmrc')).toMatch(/^min-release-age=7$/m);
  });

  test('enters the image only where the Dockerfile copies it', () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, files = '']) =>
      files.split(' '),
    );
    const [everything, ...sent] = readText('.dockerignore')
      .replaceAll(/^#.*\n/gm, '')
      .trim()
      .split('\n');
    expect(everything).toBe('*');
    expect(sent.toSorted()).toEqual([...new Set(copied)].map((file) => `!${file.replace('./', '')}`).toSorted());
  });
});

describe('workflows', () => {
  test('check all that a developer checks, and the advisories, before anything is published', () => {
    const checks = commandsOf(ci.jobs['check']).join('\n');
    for (const command of ['.ci/run', 'npm run lint', 'npm run format', 'npm run types', 'npm run audit']) {
      expect(checks).toContain(command);
    }
    const { check, pack, ...publish } = release.jobs;
    expect(check?.uses).toBe('./.github/workflows/ci.yml');
    expect(commandsOf(pack).join('\n')).toContain('= "$GITHUB_REF_NAME"');
    expect(Object.keys(publish)).toEqual(['notes', 'npm', 'image']);
    for (const job of Object.values(publish)) expect(job.needs).toEqual(['check', 'pack']);
  });

  test('publish with provenance, without a token of npm, for two architectures', () => {
    expect(commandsOf(release.jobs['npm']).join()).toContain('npm publish --provenance');
    const build = release.jobs['image']?.steps?.at(-1)?.with;
    expect(build).toMatchObject({ platforms: 'linux/amd64,linux/arm64', provenance: true, sbom: true });
    expect(workflowTexts.join('\n')).not.toMatch(/secrets\./);
  });

  test('may read alone, but for what each job publishes, and no step finds the right in a file', () => {
    for (const { permissions } of [ci, release]) expect(permissions).toEqual({ contents: 'read' });
    const rights = Object.entries(release.jobs).map(([name, { permissions }]) => [name, permissions]);
    expect(Object.fromEntries(rights)).toEqual({
      notes: { contents: 'write' },
      npm: { 'id-token': 'write' },
      image: { contents: 'read', packages: 'write' },
    });
    for (const step of stepsOf(ci, release).filter(({ uses }) => uses?.startsWith('actions/checkout'))) {
      expect(step.with).toMatchObject({ 'persist-credentials': false });
    }
  });

  test('install nothing, and run no code of a dependency, in the job that publishes to npm', () => {
    expect(commandsOf(release.jobs['npm'])).toEqual([expect.stringMatching(/^npm publish .*\.tgz$/)]);
    expect(commandsOf(release.jobs['pack']).join('\n')).toContain('npm ci --ignore-scripts && npm pack');
  });
});
