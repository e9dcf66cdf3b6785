import type { HttpRequest } from './http/http-message.ts';

/** Returns which app runs an operation: what `execute` names, or the headers of Apollo's clients; undefined without a name. */
export function clientOf({ inProcess, headers }: HttpRequest): string | undefined {
  if (inProcess) return inProcess.client;
  const name = headers['apollographql-client-name'];
  const version = headers['apollographql-client-version'];
  return name && version ? `${name} ${version}` : name;
}
