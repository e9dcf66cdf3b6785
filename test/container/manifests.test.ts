import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { describeConfig, readConfig } from '../../src/program/config.ts';
import { anchorsOf } from '../support/anchors.ts';
import { fails, tooMany } from '../support/pet-api/fault.ts';
import { startGateway } from '../support/start-gateway.ts';

const textOf = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
const compose = parse(textOf('compose.yaml'));
const [deployment, service, policy, budget] = parseAllDocuments(textOf('kubernetes.yaml')).map((one) => one.toJS());
const pod = deployment.spec.template.spec;
const [container] = pod.containers;
const variables: Record<string, string> = Object.fromEntries(
  container.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
);
const SECRETS: Record<string, string> = { PET_API_KEY: 'key', REDIS_URL: 'redis://localhost:6379' };

/** Reads the settings as petql does in that container. The secrets themselves are not here. */
function configOf(env: Record<string, unknown>) {
  const entries = Object.entries(env).map(([name, value]): [string, string] => {
    const variable = name.replace(/_FILE$/, '');
    return [variable, SECRETS[variable] ?? String(value)];
  });
  const config = readConfig('gateway', [], { NODE_ENV: 'production', ...Object.fromEntries(entries) });
  return { config, names: entries.map(([name]) => name) };
}

describe.each([
  ['compose.yaml', compose.services.petql.environment],
  ['kubernetes.yaml', variables],
])('%s', (_file, env) => {
  test('sets what petql knows, and opens the admin port to its own network', () => {
    const { config, names } = configOf(env);
    expect(config).toMatchObject({
      petApiKey: 'key',
      adminHost: '::',
      adminPort: 9090,
      redisUrl: SECRETS['REDIS_URL'] ?? '',
    });
    for (const name of names) expect(describeConfig('gateway')).toContain(` ${name} `);
  });
});

describe('compose.yaml', () => {
  test('builds the image, has a Redis that forgets nothing, and publishes no port', () => {
    const { petql, redis } = compose.services;
    const context = new URL(`${petql.build}/Dockerfile`, import.meta.url);
    expect(existsSync(fileURLToPath(context))).toBe(true);
    expect(redis.command).toMatch(/--appendonly yes .*--maxmemory \d+mb --maxmemory-policy noeviction/);
    expect(redis.healthcheck).toBeDefined();
    expect([petql.ports, redis.ports]).toEqual([undefined, undefined]);
  });

  test('starts no gateway without a key, starts again after a failure, and gives petql the time that it takes to stop', () => {
    const { backend, petql, redis } = compose.services;
    expect(petql.environment.PET_API_KEY).toMatch(/^\$\{PET_API_KEY:\?/);
    expect([backend, petql, redis].map(({ restart }) => restart)).toEqual(Array(3).fill('unless-stopped'));
    const { shutdownDelayMs } = configOf(petql.environment).config;
    expect(shutdownDelayMs).toBeGreaterThan(0);
    expect(parseInt(petql.stop_grace_period, 10) * 1_000).toBeGreaterThanOrEqual(shutdownDelayMs + 8_000);
    expect(new URL(backend.environment.PETQL_URL)).toMatchObject({ hostname: 'petql', pathname: '/graphql' });
  });
});

test('the page on deploying and the manifests say the same number of API keys for 512 MB', () => {
  const texts = ['../../src/program/README.md', 'compose.yaml', 'kubernetes.yaml'].map(textOf);
  const keys = texts.map((text) => /caches of some ([\d,]+) API keys/.exec(text)?.[1]);
  expect(new Set(keys)).toEqual(new Set(['3,000']));
});

describe('kubernetes.yaml', () => {
  test('runs without root on a read-only file system, in the memory that petql holds', () => {
    expect(pod.securityContext.runAsNonRoot).toBe(true);
    expect(readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8')).toMatch(/^USER \d+$/m);
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.resources.limits).toEqual({ memory: '512Mi' });
  });

  test('runs this version, which CHANGELOG.md describes', () => {
    const { version } = packageJson;
    expect(container.image).toMatch(new RegExp(`:${version}$`));
    expect(textOf('../../CHANGELOG.md')).toMatch(new RegExp(`^## ${version}$`, 'm'));
  });

  test('gives petql the time that it takes to stop', () => {
    const { shutdownDelayMs } = configOf(variables).config;
    expect(shutdownDelayMs).toBeGreaterThan(0);
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(shutdownDelayMs + 8_000);
  });

  test('answers the names of its Service', () => {
    const { allowedHosts } = configOf(variables).config;
    const { name } = service.metadata;
    expect(allowedHosts).toEqual([`${name}.default`, `${name}.default.svc`]);
  });

  test('probes paths that petql answers, and routes to its port', async () => {
    await using gateway = await startGateway();
    for (const { httpGet } of [container.livenessProbe, container.readinessProbe]) {
      expect((await fetch(new URL(httpGet.path, gateway.endpoint))).status).toBe(200);
      expect(httpGet.port).toBe('graphql');
    }
    const ports = Object.fromEntries(container.ports.map(({ name, containerPort }: any) => [name, containerPort]));
    expect(ports).toEqual({ graphql: configOf(variables).config.port, admin: configOf(variables).config.adminPort });
    expect(service.spec.ports[0].targetPort).toBe('graphql');
    const [spread] = pod.topologySpreadConstraints;
    const selected = [policy.spec.podSelector, budget.spec.selector, spread.labelSelector];
    expect([service.spec.selector, ...selected.map(({ matchLabels }) => matchLabels)]).toEqual(
      Array(4).fill(deployment.spec.template.metadata.labels),
    );
  });
});

describe('alerts.yaml', () => {
  const rules: Rule[] = parse(textOf('alerts.yaml')).groups[0].rules;

  test('has names that Prometheus takes, and whole sentences', () => {
    const names = rules.flatMap(({ labels, annotations }) => Object.keys({ ...labels, ...annotations }));
    for (const name of names) expect(name).toMatch(/^[a-zA-Z_]\w*$/);
    expect(rules.filter(({ annotations }) => !/^\S.*\.$/.test(annotations['summary'] ?? ''))).toEqual([]);
  });

  test('leads each alert to what an operator does then', () => {
    const repository = packageJson.repository.url.replace(/^git\+(.+)\.git$/, '$1');
    const astray = rules.filter(({ annotations }) => {
      const { pathname, hash, origin } = new URL(annotations['runbook_url'] ?? '');
      const [root, path = ''] = `${origin}${pathname}`.split('/blob/main/');
      return root !== repository || !anchorsOf(textOf(`../../${path}`)).includes(hash.slice(1));
    });
    expect(astray).toEqual([]);
  });

  test('has rules by series that petql has from its start or once the first one matters', async () => {
    const ofPetql = rules.filter(({ expr }) => !expr.includes('up{job='));
    expect(ofPetql).toHaveLength(rules.length - 1);
    const redisUrl = 'redis://127.0.0.1:1';
    await using gateway = await startGateway({ gateway: { admin: true, redisUrl, maxWaitMs: 50 } });
    const started = await samplesOf(gateway);
    const increasing = ofPetql.filter(({ expr }) => expr.includes('increase('));
    expect(increasing.filter(({ expr }) => !isServed(expr, started))).toEqual([]);
    await using failing = await startGateway({ gateway: { admin: true, maxWaitMs: 50 } });
    await failing.query('{ pets { id } }', { headers: { authorization: 'Bearer stray' } });
    failing.petApi.fault = fails(500);
    await failing.query('{ pets { id } }');
    failing.petApi.fault = tooMany(30);
    await failing.query('{ pets(status: SOLD) { id } }');
    const samples = [...started, ...(await samplesOf(failing))];
    expect(ofPetql.filter(({ expr }) => !isServed(expr, samples))).toEqual([]);
  });
});

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

async function samplesOf({ adminOrigin }: { readonly adminOrigin: string }): Promise<string[]> {
  return (await (await fetch(`${adminOrigin}/metrics`)).text()).split('\n');
}

/** Whether there are samples for each selector of an expression, and a selector at all. */
function isServed(expr: string, samples: readonly string[]): boolean {
  const selectors = selectorsOf(expr);
  return selectors.length > 0 && selectors.every((matches) => samples.some(matches));
}

/** The selectors of an expression, each as a test of a sample. */
function selectorsOf(expr: string): ((sample: string) => boolean)[] {
  return [...expr.matchAll(/(petql_\w+)(?:\{([^}]*)\})?/g)].map(([, name = '', labels = '']) => {
    const parts = [...labels.matchAll(/(\w+)=~?"([^"]*)"/g)].map(([, label, value]) =>
      RegExp(`${label}="(?:${value})"`),
    );
    return (sample) => RegExp(`^${name}[ {]`).test(sample) && parts.every((part) => part.test(sample));
  });
}
