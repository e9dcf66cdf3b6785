import { setTimeout } from 'node:timers/promises';
import packageJson from '../../../package.json' with { type: 'json' };
import { post } from '../../support/client.ts';
import { rowOf } from '../../support/tally.ts';
import type { Row } from '../../support/tally.ts';
import { ENDED, until } from './engine.ts';
import type { Engine } from './engine.ts';

const STARTS_MS = 30_000;
/** Twice its interval, and the start. */
const HEALTHY_MS = 30_000;
const STOP_S = '15';

/** Options of `docker run`, and what follows the image. */
type Way = readonly [name: string, options: readonly string[], args?: readonly string[]];

const LOCKED = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
/** Docker's own network has none. */
const WITH_IPV6 = ['--sysctl', 'net.ipv6.conf.all.disable_ipv6=0'];
const IN_VOLUME = ['-v', '/state', '-e', 'STATE_FILE=/state/state.db'];
const ANY_USER = ['--user', '12345:0'];

const WAYS: readonly Way[] = [
  ['as it is', []],
  ['locked', LOCKED],
  ['by an arbitrary user, as OpenShift has it', [...ANY_USER, ...LOCKED]],
  ['in the smallest container', ['--memory', '192m', '--memory-swap', '192m']],
  ['with a state file in a new volume', [...IN_VOLUME, ...LOCKED]],
  ['with a state file, by an arbitrary user', [...IN_VOLUME, ...ANY_USER, ...LOCKED]],
  ['without IPv6', ['--sysctl', 'net.ipv6.conf.all.disable_ipv6=1']],
  ['behind an init', ['--init']],
];

/** Each decides where petql listens, or what a program of Node.js does in the container. */
const ADDRESSES: readonly Way[] = [
  ['the image', []],
  ['--port', [], ['--port', '4100']],
  ['PORT', ['-e', 'PORT=4200']],
  ['an empty PORT', ['-e', 'PORT=']],
  ['--port 0', [], ['--port', '0']],
  ['--host ::1', WITH_IPV6, ['--host', '::1']],
  ['HOST', ['-e', 'HOST=127.0.0.1']],
  ['--host 127.0.0.2', [], ['--host', '127.0.0.2']],
  ['an admin port', ['-e', 'ADMIN_PORT=9090']],
  ['a debugger', ['-e', 'NODE_OPTIONS=--inspect=0.0.0.0:9229']],
  ['a proxy', ['-e', 'NODE_USE_ENV_PROXY=1', '-e', 'HTTP_PROXY=http://127.0.0.1:9']],
  ['a module that only the first process can load', ['-e', `NODE_OPTIONS=--import data:text/javascript,${onlyOnce()}`]],
];

/** As an SDK that is loaded into each process would be, and so into each health check. */
function onlyOnce(): string {
  return encodeURIComponent("if(process.argv[1]?.includes('check-health'))process.exit(1)");
}

/** How long after the start the signal comes: while the shell, Node.js and petql start, and later. */
const SIGNALS_AFTER_MS = [0, 0, 25, 50, 100, 200, 400, 800];

/** Runs the image in single containers. */
export async function checkContainers(engine: Engine): Promise<readonly Row[]> {
  return [
    await checkContents(engine),
    await checkWays(engine),
    await checkFamilies(engine),
    await checkHealth(engine),
    await checkHang(engine),
    await checkSignals(engine),
    await checkCompiled(engine),
  ];
}

async function start(engine: Engine, [, options, args = []]: Way): Promise<{ id: string; endpoint: string }> {
  const id = await engine.docker('run', '-d', ...options, 'petql', '--sandbox', ...args);
  return { id, endpoint: `http://${await engine.inspect(id, '.NetworkSettings.IPAddress')}:4000/graphql` };
}

async function checkContents(engine: Engine): Promise<Row> {
  const shell = (script: string) => engine.docker('run', '--rm', '--entrypoint', 'sh', 'petql', '-c', script);
  const modules = (await shell('ls node_modules node_modules/@*')).split('\n');
  const problems = Object.keys(packageJson.devDependencies)
    .filter((name) => modules.includes(name))
    .map((name) => `it holds ${name}`);
  const user = await engine.inspect('petql', '.Config.User');
  if (user !== '1000') problems.push(`expected the user 1000, got "${user}"`);
  const hash = await shell('echo demo-free | sh src/program/entrypoint.sh hash-key --pet-api-url http://pets.test/v1');
  if (!/^[\w-]{22,}$/.test(hash)) problems.push(`expected a hash of what standard input has, got "${hash}"`);

  const [, bytes = '0'] = /(\d+)/.exec(await engine.inspect('petql', '.Size')) ?? [];
  const own = await shell('du -sk /app/node_modules /app/src /tmp | sort -rn | tr "\\t\\n" " ,"');
  const measured = `${Math.round(Number(bytes) / 1e6)} MB; in KB: ${own}`;
  return rowOf({ promise: 'the image holds what runs, and takes any command', looked: 3, problems, measured });
}

async function checkWays(engine: Engine): Promise<Row> {
  const problems: string[] = [];
  for (const way of WAYS) {
    const [name] = way;
    const { id, endpoint } = await start(engine, way);
    const isAnswered = await until(() => answers(endpoint), STARTS_MS);
    if (!isAnswered) problems.push(`${name}: ${(await engine.docker('logs', id)).split('\n').at(-1)}`);
    if (!(await showsGraphiql(endpoint))) problems.push(`${name}: GraphiQL has no page, or no script`);
    await engine.docker('stop', '-t', STOP_S, id);
    const code = await engine.inspect(id, '.State.ExitCode');
    if (code !== '0') problems.push(`${name}: it ends with ${code}`);
    await engine.docker('rm', '-v', id);
  }
  const measured = WAYS.map(([name]) => name).join(', ');
  return rowOf({ promise: 'petql answers, shows GraphiQL, and stops with 0', looked: WAYS.length, problems, measured });
}

async function answers(endpoint: string): Promise<boolean> {
  return post(endpoint, '{ pets(limit: 1) { id } }').then(
    ({ data }) => data?.['pets'][0].id === '1',
    () => false,
  );
}

async function showsGraphiql(endpoint: string): Promise<boolean> {
  try {
    const page = await (await fetch(endpoint, { headers: { accept: 'text/html' } })).text();
    const [, script = ''] = /<script src="([^"]+)"/.exec(page) ?? [];
    return (await (await fetch(new URL(script, endpoint))).text()).length > 1_000_000;
  } catch {
    return false;
  }
}

/** A pod of a cluster with IPv6 alone has no other address. */
async function checkFamilies(engine: Engine): Promise<Row> {
  const { id, endpoint } = await start(engine, ['', WITH_IPV6]);
  await until(() => answers(endpoint), STARTS_MS);
  const hosts = ['127.0.0.1', '[::1]'];
  const asked = hosts.map(async (host) => {
    const program = `fetch('http://${host}:4000/health/live').then(({ ok }) => console.log(ok), () => console.log('refused'))`;
    const answer = await engine.docker('exec', id, 'node', '-e', program);
    return answer === 'true' ? [] : [`${host}: ${answer}`];
  });
  const problems = (await Promise.all(asked)).flat();
  await engine.docker('rm', '-fv', id);
  return rowOf({ promise: 'petql listens on both families', looked: hosts.length, problems, measured: '' });
}

async function checkHealth(engine: Engine): Promise<Row> {
  const problems: string[] = [];
  for (let first = 0; first < ADDRESSES.length; first += 4) {
    const checked = ADDRESSES.slice(first, first + 4).map(async (way) => {
      const { id } = await start(engine, way);
      const status = () => engine.inspect(id, '.State.Health.Status');
      const isHealthy = await until(async () => (await status()) === 'healthy', HEALTHY_MS);
      if (!isHealthy) problems.push(`${way[0]}: ${await engine.inspect(id, 'json .State.Health')}`);
      await engine.docker('rm', '-fv', id);
    });
    await Promise.all(checked);
  }
  const measured = ADDRESSES.map(([name]) => name).join(', ');
  return rowOf({ promise: 'it is healthy wherever it listens', looked: ADDRESSES.length, problems, measured });
}

async function checkHang(engine: Engine): Promise<Row> {
  const { id, endpoint } = await start(engine, ['', ['--health-interval', '1s', '--health-retries', '1']]);
  await until(() => answers(endpoint), STARTS_MS);
  await engine.docker('exec', id, 'sh', '-c', 'kill -STOP $(cat /proc/1/task/1/children)');
  const status = () => engine.inspect(id, '.State.Health.Status');
  const isUnhealthy = await until(async () => (await status()) === 'unhealthy', HEALTHY_MS);
  const problems = isUnhealthy ? [] : [`it is ${await status()}`];
  await engine.docker('rm', '-fv', id);
  return rowOf({ promise: 'a petql that hangs is not healthy', looked: 1, problems, measured: '' });
}

async function checkSignals(engine: Engine): Promise<Row> {
  const problems: string[] = [];
  const codes: string[] = [];
  for (const afterMs of SIGNALS_AFTER_MS) {
    const { id } = await start(engine, ['', []]);
    await setTimeout(afterMs);
    await engine.docker('stop', '-t', '5', id);
    const code = await engine.inspect(id, '.State.ExitCode');
    codes.push(code);
    if (!['0', String(ENDED.SIGTERM)].includes(code)) problems.push(`${afterMs} ms after the start: ${code}`);
    await engine.docker('rm', '-v', id);
  }
  const measured = `exit codes ${codes.join(', ')}`;
  return rowOf({ promise: 'SIGTERM ends it at any moment', looked: codes.length, problems, measured });
}

/** Node.js writes what it has compiled when it ends. */
async function checkCompiled(engine: Engine): Promise<Row> {
  const { id, endpoint } = await start(engine, ['', []]);
  await until(() => answers(endpoint), STARTS_MS);
  await engine.docker('stop', '-t', STOP_S, id);
  const written = (await engine.docker('diff', id)).split('\n').filter((line) => /^A .*compile-cache\//.test(line));
  await engine.docker('rm', '-v', id);
  const shell = ['run', '--rm', '--entrypoint', 'sh', 'petql', '-c', 'ls /tmp/node-compile-cache/* | wc -l'];
  const measured = `${await engine.docker(...shell)} modules in the image`;
  // Those of the first operation, which no start has.
  const problems = written.length > 20 ? [`the first start has compiled ${written.length} more: ${written[0]}`] : [];
  return rowOf({ promise: 'the first start finds its modules compiled', looked: 1, problems, measured });
}
