import { SECURITY_HEADERS } from './security-headers.ts';

/** Adds what every answer says, where it does not say otherwise itself, and what CORS grants to the page that asked. */
export function setResponseHeaders({ headers }: Response, cors: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) if (!headers.has(name)) headers.set(name, value);
  for (const [name, value] of Object.entries(cors)) {
    if (name !== 'vary') headers.set(name, value);
    else if (headers.get(name)?.includes(value) !== true) headers.append(name, value);
  }
}
