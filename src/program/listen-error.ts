import { bothNames } from './flags.ts';

/** Adds the settings that change the address to Node's message. */
export function listenError(error: unknown, host: string, port: string): Error {
  const settings = `${bothNames(host)} or ${bothNames(port)}`;
  return new Error(`${(error as Error).message}; choose another address with ${settings}`, { cause: error });
}
