import { expect, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { GatewayOptions } from '../../src/index.ts';
import { startEmbedded } from '../support/start-embedded.ts';

const petApiUrl = 'https://pets.example/v1';

test.each<[string, Record<string, unknown>, string]>([
  ['no address', {}, 'petApiUrl: expected an http or https address without user, query and fragment, got undefined'],
  [
    'an address of another protocol',
    { petApiUrl: new URL('ftp://x/') },
    'petApiUrl: expected an http or https address',
  ],
  [
    'an address with a password',
    { petApiUrl: 'https:u:p@x/' },
    'petApiUrl: expected an http or https address without user, query and fragment, got "…@x/"',
  ],
  [
    'origins with a password',
    { petApiUrl, corsOrigins: ['https://u:p@x'] },
    "corsOrigins: expected origins such as https://pets.example, or * for any, got …@x' ]",
  ],
  ['an empty key', { petApiUrl, petApiKey: '' }, 'petApiKey: expected 1 to 512 visible ASCII characters'],
  ['a state file without a name', { petApiUrl, stateFile: '' }, 'stateFile: expected the path of a file, got ""'],
  [
    'an endpoint that is a pattern',
    { petApiUrl, endpoint: '/:any' },
    'endpoint: expected a path such as /api/graphql, got "/:any"',
  ],
  [
    'an endless wait',
    { petApiUrl, maxWaitMs: Infinity },
    'maxWaitMs: expected a whole number from 0 to 600000, got Infinity',
  ],
  [
    'a time that is a text',
    { petApiUrl, upstreamTimeoutMs: '5' },
    'upstreamTimeoutMs: expected a whole number from 1 to 600000, got "5"',
  ],
  [
    'a time that is a bigint',
    { petApiUrl, maxWaitMs: 5n },
    'maxWaitMs: expected a whole number from 0 to 600000, got 5n',
  ],
  ['an unknown plan', { petApiUrl, plan: 'gold' }, 'plan: expected auto, free, pro, business, or PER_MINUTE/PER_DAY'],
  ['a plan without figures', { petApiUrl, plan: { perMinute: 0 } }, 'plan: expected auto, free, pro, business, or'],
  [
    'a log that is none',
    { petApiUrl, log: { info() {} } },
    'log: expected an object with the functions info, warn, error',
  ],
  ['an option that there is not', { petApiUrl, petApiURL: petApiUrl }, 'petApiURL: there is no such option'],
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
    /^createGateway: petApiUrl: [^;]*; petApiKey: [^;]*; redisUrl: [^;]*; keySecret: [^;]*$/,
  );
  expect(() => createGateway(options as unknown as GatewayOptions)).not.toThrow(/secret(?!:)/i);
});

test('a state file that cannot be used is named as the option that it is', () => {
  expect(() => createGateway({ petApiUrl, stateFile: '/proc/none/state.db' })).toThrow(
    /^createGateway: stateFile: cannot use \/proc\/none\/state\.db: /,
  );
});

test('options that are given as undefined are as good as none', async () => {
  await using gateway = await startEmbedded({ petApiKey: undefined, maxWaitMs: undefined } as object);
  expect(
    (await gateway.execute({ document: '{ pets(limit: 1) { id } }', apiKey: 'demo-free' })).errors,
  ).toBeUndefined();
});

test('a plan can be named, and a log can be the console', async () => {
  await using gateway = await startEmbedded({ plan: '500/20000', log: console });
  const document = '{ rateLimit { plan } }';
  expect((await gateway.execute({ document, apiKey: 'demo-free' })).data).toEqual({ rateLimit: { plan: '500/20000' } });
});
