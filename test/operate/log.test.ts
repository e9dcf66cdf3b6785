import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { redisIsHere, startRedis } from '../support/redis-server.ts';
import { startPetql } from '../support/run-petql.ts';
import type { PetqlProcess } from '../support/run-petql.ts';
import { until } from '../support/until.ts';

/** @throws SyntaxError where a line is no JSON. */
function linesOf({ output }: PetqlProcess): Record<string, unknown>[] {
  return output.stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('the log says when petql listens, and why and when it stops', async () => {
  const petql = await startPetql(['--port', '0', '--admin-port', '0']);
  petql.kill('SIGTERM');
  expect(await petql.exited).toBe(0);
  const { version } = packageJson;
  expect(linesOf(petql)).toMatchObject([
    { level: 'info', msg: 'listening', version, endpoint: petql.address, admin: expect.stringMatching(/^http/) },
    { level: 'info', msg: 'stopping', signal: 'SIGTERM' },
    { level: 'info', msg: 'stopped' },
  ]);
});

test('a warning of Node.js is a line in which no name is twice', async () => {
  const warn = "process.emitWarning('the moon is full', 'MoonWarning')";
  const petql = await startPetql(['--port', '0'], {
    nodeOptions: ['--import', `data:text/javascript,setTimeout(() => ${warn}, 500)`],
  });
  await until(() => petql.output.stderr.includes('the moon is full'));
  petql.kill('SIGTERM');
  await petql.exited;
  expect(linesOf(petql)).toContainEqual(
    expect.objectContaining({ level: 'warn', name: 'petql', warning: 'MoonWarning', msg: 'the moon is full' }),
  );
  for (const line of petql.output.stderr.trimEnd().split('\n')) {
    const names = [...line.matchAll(/[{,]"(\w+)":/g)].map(([, name]) => name);
    expect(names).toEqual([...new Set(names)]);
  }
});

// ioredis writes its own warnings as text.
test.skipIf(!redisIsHere)('a Redis whose user lacks a right is a line of JSON', async () => {
  const redis = await startRedis();
  await redis.command('ACL', 'SETUSER', 'petql', 'on', '>password', '~*', '+@all', '-info');
  const petql = await startPetql(['--port', '0', '--redis-url', redis.url.replace('//', '//petql:password@')]);
  try {
    await until(() => petql.output.stderr.includes('INFO command fails'));
    expect(linesOf(petql)).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: expect.stringContaining('INFO command fails') }),
    );
  } finally {
    petql.kill('SIGKILL');
    await petql.exited;
    await redis.close();
  }
});
