import { text } from 'node:stream/consumers';
import { key } from '../settings/setting-shapes.ts';
import { createNames } from '../store/names.ts';
import { readConfig } from './config.ts';

/**
 * Returns the hash of an API key as the log and the quota page show it. The key comes from PET_API_KEY, else from standard input.
 *
 * @throws Error that says in one line which setting is wrong.
 */
export async function hashKey(args: readonly string[]): Promise<string> {
  const isInArguments = args.some((arg) => arg.startsWith('--pet-api-key'));
  if (isInArguments)
    throw new Error('hash-key takes the API key from PET_API_KEY or standard input, since arguments are public');

  const { petApiUrl, petApiKey, keySecret } = readConfig('hashKey', args, process.env);
  const given = typeof petApiKey === 'string' ? petApiKey : (await text(process.stdin)).trim();
  const { data: apiKey } = key.safeParse(given);
  if (apiKey === undefined) throw new Error('expected an API key in PET_API_KEY or on standard input');
  return createNames(petApiUrl, keySecret)(apiKey);
}
