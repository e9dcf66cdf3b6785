import { Console } from 'node:console';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import { REFUSES } from '../support/pet-api/fault.ts';
import { startEmbedded } from '../support/start-gateway.ts';

const petApiUrl = 'https://pets.example/v1';
const URL_ONLY = 'an http or https URL without user, query and fragment';
const whole = (low: number) => `a whole number from ${low} to 600000`;
const ORIGINS = 'origins such as https://pets.example or capacitor://localhost, or * for any';

test.each<[string, Record<string, unknown>, string]>([
  ['no address', {}, `petApiUrl must be ${URL_ONLY}, got undefined`],
  ['an address of another protocol', { petApiUrl: new URL('ftp://x/') }, 'petApiUrl must be an http or https URL'],
  ['an address with a password', { petApiUrl: 'https:u:p@x/' }, `petApiUrl must be ${URL_ONLY}, got "…@x/"`],
  [
    'origins with a password',
    { petApiUrl, corsOrigins: ['https://u:p@x'] },
    `corsOrigins must be ${ORIGINS}, got …@x' ]`,
  ],
  ['an empty key', { petApiUrl, petApiKey: '' }, 'petApiKey must be 1 to 512 visible ASCII characters'],
  ['a state file without a name', { petApiUrl, stateFile: '' }, 'stateFile must be the path of a file, got ""'],
  [
    'an endpoint that is a pattern',
    { petApiUrl, endpoint: '/:any' },
    'endpoint must be a path such as /api/graphql, got "/:any"',
  ],
  ['the root as an endpoint', { petApiUrl, endpoint: '/' }, 'endpoint must be a path such as /api/graphql, got "/"'],
  ['an endpoint that is a list', { petApiUrl, endpoint: ['/graphql'] }, 'endpoint must be a path such as /api/graphql'],
  ['an endless wait', { petApiUrl, maxWaitMs: Infinity }, `maxWaitMs must be ${whole(0)}, got Infinity`],
  ['a time that is a text', { petApiUrl, upstreamTimeoutMs: '5' }, `upstreamTimeoutMs must be ${whole(1)}, got "5"`],
  ['a time that is a bigint', { petApiUrl, maxWaitMs: 5n }, `maxWaitMs must be ${whole(0)}, got 5n`],
  ['an unknown plan', { petApiUrl, plan: 'gold' }, 'plan must be auto, free, pro, business, or PER_MINUTE/PER_DAY'],
  ['a plan without figures', { petApiUrl, plan: { perMinute: 0 } }, 'plan must be auto, free, pro, business, or'],
  [
    'a log that is none',
    { petApiUrl, log: { info() {} } },
    'log must be an object with the functions info, warn, error',
  ],
  ['an option that there is not', { petApiUrl, petApiURL: petApiUrl }, 'petApiURL is not an option'],
])('createGateway refuses %s', (_name, options, problem) => {
  expect(() => createGateway(options as unknown as GatewayOptions)).toThrow(TypeError);
  expect(() => createGateway(options as unknown as GatewayOptions)).toThrow(`createGateway: ${problem}`);
});

test('every wrong option is named at once, and no secret is repeated', () => {
  const options = {
    petApiUrl: 'https://a:secret@x',
    petApiKey: 'a secret',
    redisUrl: 'http://:secret@x',
    keySecret: 'secret',
  };
  expect(() => createGateway(options as unknown as GatewayOptions)).toThrow(
    /^createGateway: petApiUrl must [^;]*; petApiKey must [^;]*; redisUrl must [^;]*; keySecret must [^;]*$/,
  );
  expect(() => createGateway(options as unknown as GatewayOptions)).not.toThrow(/secret(?! must)/i);
});

test('a state file that cannot be used is named as the option that it is', () => {
  expect(() => createGateway({ petApiUrl, stateFile: '/proc/none/state.db' })).toThrow(
    /^createGateway: stateFile: cannot use \/proc\/none\/state\.db: /,
  );
});

test('options that are undefined count as none, and a plan can be named', async () => {
  const keys = { 'demo-free': { perMinute: 500, perDay: 20_000 } };
  const options = { petApiKey: undefined, maxWaitMs: undefined, plan: '500/20000' } as const;
  await using gateway = await startEmbedded(options, { keys });
  const { data } = await gateway.execute({
    document: '{ pets(limit: 1) { id } rateLimit { plan } }',
    apiKey: 'demo-free',
  });
  expect(data).toEqual({ pets: [{ id: '1' }], rateLimit: { plan: '500/20000' } });
});

test.each<[string, GatewayOptions['logLevel'], number[]]>([
  ['warnings alone by default', undefined, [1, 1]],
  ['more with a lower level', 'info', [1, 2]],
  ['each operation at the level debug', 'debug', [2, 4]],
  ['nothing at the level silent', 'silent', [0, 0]],
])('the console as the log gets %s', async (_name, logLevel, lines) => {
  const output = new PassThrough().setEncoding('utf8');
  let text = '';
  output.on('data', (chunk: string) => (text += chunk));
  await using gateway = await startEmbedded({ log: new Console(output), logLevel });
  const operation = { document: '{ pets(limit: 1) { id } }', apiKey: 'demo-free', cacheControl: 'no-cache' };
  const counts: number[] = [];
  const execute = async (waitMs: number) => {
    await gateway.execute({ ...operation, waitMs });
    // Without the decisions of the throttle, which name the key.
    counts.push(text.split(/^(?=\{)/m).filter((line) => line !== '' && !/^\{\s*key:/.test(line)).length);
  };
  gateway.petApi.fault = REFUSES;
  await execute(300);
  gateway.petApi.fault = undefined;
  await execute(5_000);
  expect(counts).toEqual(lines);
});
