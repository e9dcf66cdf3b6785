import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { FIRING } from './alerts/firing.ts';
import type { Firing } from './alerts/firing.ts';
import type { Suite } from './suite.ts';

const RULES = fileURLToPath(new URL('../container/alerts.yaml', import.meta.url));
const MISSING = 'promtool is missing: apt-get install --no-install-recommends prometheus';

interface Rule {
  readonly alert: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const LOADED = 'Prometheus loads the alerts';
const IN_TIME = 'each alert fires at its minute and not before';

/** Prometheus itself judges the rules that are written for it. */
export const alerts: Suite = {
  about: 'gives the alerts to promtool, which Prometheus brings',
  checks: [
    { name: 'rules', goal: LOADED, run: async () => [await judge(LOADED, ['check', 'rules', RULES])] },
    { name: 'firing', goal: IN_TIME, run: async () => [await testRules()] },
  ],
};

async function testRules(): Promise<Row> {
  const { groups } = parse(await readFile(RULES, 'utf8'));
  const rules: readonly Rule[] = groups[0].rules;
  const untested = rules.filter(({ alert }) => !FIRING.some((firing) => firing.alert === alert));
  if (untested.length > 0) {
    const problems = untested.map(({ alert }) => `test/verify/alerts/firing.ts has no series for ${alert}`);
    return rowOf({ promise: IN_TIME, looked: 0, problems, measured: '' });
  }

  const folder = await mkdtemp(join(tmpdir(), 'petql-alerts-'));
  try {
    const file = join(folder, 'tests.yaml');
    const tests = FIRING.map((firing) => testOf(firing, rules));
    // JSON is YAML.
    await writeFile(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
    return await judge(IN_TIME, ['test', 'rules', file], tests.length);
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

/** Where promtool is missing, the row says so; that is a failure in continuous integration only. */
async function judge(promise: string, args: readonly string[], looked = 1): Promise<Row> {
  try {
    const { stdout } = await promisify(execFile)('promtool', args);
    const measured = stdout.trim().split('\n').at(-1)?.trim() ?? '';
    return rowOf({ promise, looked, problems: [], measured });
  } catch (error) {
    const { code, stdout, stderr } = error as Error & { code: number | string; stdout: string; stderr: string };
    if (code !== 'ENOENT') return rowOf({ promise, looked, problems: [stdout + stderr], measured: '' });

    const problems = process.env['CI'] ? [MISSING] : [];
    return rowOf({ promise, looked: 0, problems, measured: MISSING });
  }
}
