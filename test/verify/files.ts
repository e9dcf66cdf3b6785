import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { FIRING } from './files/firing.ts';
import type { Firing } from './files/firing.ts';
import type { Suite } from './suite.ts';

const RULES = fileURLToPath(new URL('../container/alerts.yaml', import.meta.url));
const COMPOSE = fileURLToPath(new URL('../container/compose.yaml', import.meta.url));

interface Rule {
  readonly alert: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A program, and where it comes from. */
interface Program {
  readonly command: string;
  readonly source: string;
}

const PROMTOOL = { command: 'promtool', source: 'apt-get install --no-install-recommends prometheus' };
const DOCKER_COMPOSE = { command: 'docker-compose', source: 'apt-get install --no-install-recommends docker-compose' };

const LOADED = 'Prometheus loads the alerts';
const IN_TIME = 'each alert fires at its minute and not before';
const COMPOSED = 'Docker Compose reads compose.yaml, and refuses it without an API key';

/** The programs themselves judge the files that are written for them. */
export const files: Suite = {
  about: 'gives alerts.yaml and compose.yaml to Prometheus and Docker Compose',
  checks: [
    { name: 'alerts', goal: LOADED, run: async () => [await judge(LOADED, PROMTOOL, ['check', 'rules', RULES])] },
    { name: 'firing', goal: IN_TIME, run: async () => [await testRules()] },
    { name: 'compose', goal: COMPOSED, run: readCompose },
  ],
};

async function readCompose(): Promise<readonly Row[]> {
  const args = ['-f', COMPOSE, 'config'];
  const env = { BACKEND_IMAGE: 'backend', PET_API_KEY: 'key' };
  const read = await judge(COMPOSED, DOCKER_COMPOSE, args, { env });
  if (read.looked === 0 || read.broken > 0) return [read];

  const keyless = await judge(COMPOSED, DOCKER_COMPOSE, args, { env: { ...env, PET_API_KEY: '' } });
  return keyless.broken > 0 ? [read] : [rowOf({ ...read, problems: ['it starts without an API key'], broken: 1 })];
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
function testOf({ alert, series, firesAtMinute, silentUntilMinute, on = {} }: Firing, rules: readonly Rule[]): object {
  const { labels, annotations } = rules.find((rule) => rule.alert === alert) ?? {};
  const fired = { exp_labels: { ...labels, ...on }, exp_annotations: annotations };
  const isSilent = (minute: number) => firesAtMinute === undefined || minute < firesAtMinute;
  const minutes = Array.from({ length: (firesAtMinute ?? silentUntilMinute) + 1 }, (_, minute) => minute);
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

interface JudgeOptions {
  /** How many files or tests it judges. Default 1. */
  readonly looked?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Where the program is missing, the row says so; that is a failure in continuous integration only. */
async function judge(
  promise: string,
  { command, source }: Program,
  args: readonly string[],
  { looked = 1, env = {} }: JudgeOptions = {},
): Promise<Row> {
  try {
    const { stdout } = await promisify(execFile)(command, args, { env: { ...process.env, ...env } });
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
