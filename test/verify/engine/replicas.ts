import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { rowOf } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';
import { until } from './engine.ts';
import type { Engine } from './engine.ts';
import type { LoadReport } from './load.ts';

const HAPROXY_CFG = fileURLToPath(new URL('haproxy.cfg', import.meta.url));
const LOAD = fileURLToPath(new URL('load.ts', import.meta.url));

const REPLICAS = [1, 2, 3] as const;
const HEALTHY_MS = 60_000;
const SECONDS = 75;
const PER_SECOND = 20;
/** What a killed process was doing is lost; the balancer notices within half a second. */
const KILLED_MS = 1_500;
const MAX_LOST = 5;

const HEALTHY = 'compose.yaml starts three healthy replicas behind a healthy Redis';
const SERVED =
  'nothing fails through a rolling restart, a restart of Redis and a killed replica, but what that one was doing';
const WITHIN = 'the pet API never answers 429';
const STOPPED = 'each replica stops with 0 within its grace';

/** The sandbox is the pet API; the backend is there for its network. */
const OVERRIDE = `
services:
  petql: { image: petql, environment: { PET_API_URL: 'http://sandbox:4000/v1' } }
  sandbox: { image: petql, command: [sandbox], healthcheck: { test: [NONE] } }
  backend: { entrypoint: [sleep, infinity], healthcheck: { test: [NONE] } }
`;

/** Runs compose.yaml as it is over the sandbox, and disturbs it under load. Prints the log of each replica where something broke. */
export async function checkReplicas(engine: Engine, print: (text: string) => void): Promise<readonly Row[]> {
  await using resources = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'petql-compose-'));
  resources.defer(() => rm(folder, { recursive: true }));
  const override = join(folder, 'override.yaml');
  await writeFile(override, OVERRIDE);

  await engine.compose(override, 'up', '-d', '--no-build');
  resources.defer(() => engine.compose(override, 'down', '-v', '-t', '1'));
  const healthy = () => engine.docker('ps', '-q', '--filter', 'name=petql_petql', '--filter', 'health=healthy');
  const areHealthy = await until(async () => (await healthy()).split('\n').length === REPLICAS.length, HEALTHY_MS);
  const started = rowOf({ promise: HEALTHY, looked: 4, problems: areHealthy ? [] : ['they are not'], measured: '' });
  if (!areHealthy) return [started];

  const network = ['-t', await engine.inspect('petql_backend_1', '.State.Pid'), '-n'];
  const balancer = spawn('nsenter', [...network, 'haproxy', '-db', '-f', HAPROXY_CFG], { stdio: 'ignore' });
  resources.defer(async () => {
    const ended = once(balancer, 'exit');
    balancer.kill('SIGTERM');
    await ended;
  });
  await setTimeout(3_000);

  const args = [
    ...network,
    process.execPath,
    LOAD,
    'http://127.0.0.1:8080/graphql',
    String(SECONDS),
    String(PER_SECOND),
  ];
  const loading = promisify(execFile)('nsenter', args, { maxBuffer: 100_000_000 });
  const { codes, killedMs } = await disturb(engine);
  const report = JSON.parse((await loading).stdout) as LoadReport;

  const logs = await Promise.all(REPLICAS.map((replica) => engine.docker('logs', `petql_petql_${replica}`)));
  const of429 = logs.flatMap((log) => log.split('\n')).filter((line) => line.includes('answered 429'));
  const wrong = codes.filter((code) => code !== '0');
  const rows = [
    started,
    servedRow(report, killedMs),
    rowOf({ promise: WITHIN, looked: report.sent, problems: of429, measured: '' }),
    rowOf({ promise: STOPPED, looked: codes.length, problems: wrong, measured: `exit codes ${codes.join(', ')}` }),
  ];
  if (rows.some(({ broken }) => broken > 0)) {
    for (const [index, log] of logs.entries()) print(`the log of replica ${index + 1}:\n${log}`);
  }
  return rows;
}

/** Replaces one replica after the other, restarts Redis, and kills a replica. */
async function disturb(engine: Engine): Promise<{ readonly codes: readonly string[]; readonly killedMs: number }> {
  const codes: string[] = [];
  await setTimeout(3_000);
  for (const replica of REPLICAS) {
    const name = `petql_petql_${replica}`;
    // The grace that compose.yaml gives it.
    await engine.docker('stop', '-t', await engine.inspect(name, '.Config.StopTimeout'), name);
    codes.push(await engine.inspect(name, '.State.ExitCode'));
    await engine.docker('start', name);
    await until(async () => (await engine.inspect(name, '.State.Health.Status')) === 'healthy', HEALTHY_MS);
  }

  await engine.docker('restart', 'petql_redis_1');
  await setTimeout(5_000);
  const killedMs = Date.now();
  await engine.docker('kill', '-s', 'KILL', 'petql_petql_3');
  return { codes, killedMs };
}

function servedRow({ sent, stale, slowestMs, failures }: LoadReport, killedMs: number): Row {
  const isOfKill = ({ atMs, what }: LoadReport['failures'][number]) =>
    what.endsWith(' HTTP') && Math.abs(atMs - killedMs) < KILLED_MS;
  const lost = failures.filter(isOfKill);
  const problems = failures
    .filter((failure) => !isOfKill(failure))
    .map(({ atMs, what }) => `${what} at ${new Date(atMs).toISOString()}`);
  if (lost.length > MAX_LOST) problems.push(`${lost.length} requests were lost with the killed replica`);
  const measured = `${sent} operations, ${stale} of them stale, the slowest in ${slowestMs} ms`;
  return rowOf({ promise: SERVED, looked: sent, problems, measured, explained: Math.min(lost.length, MAX_LOST) });
}
