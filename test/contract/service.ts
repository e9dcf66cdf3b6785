import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Answer, Operation } from './open-api.ts';

/** The service that is held against the contract. */
export interface Service {
  /** Whether its choices are its own, where the contract leaves them open. */
  readonly foreign: boolean;
  /** How many requests it was sent. */
  readonly requests: number;
  /**
   * Sends one request with the API key.
   *
   * @throws Error when the plan is used up; no request is sent after that, since the service may ban a key for it.
   */
  send(operation: Operation, request?: ServiceRequest): Promise<Answer>;
  close(): Promise<void>;
}

export interface ServiceRequest {
  /** What stands for the `{petId}` of the path. */
  readonly petId?: string;
  /** With its question mark. */
  readonly query?: string;
  readonly body?: string;
  /** Another key than the right one; null for none. */
  readonly key?: string | null;
}

/**
 * The service at PET_API_URL with the key in PET_API_KEY, or else a sandbox of its own.
 *
 * @throws Error when only one of the two variables is set.
 */
export async function openService(env: NodeJS.ProcessEnv): Promise<Service> {
  const { PET_API_URL: url, PET_API_KEY: apiKey } = env;
  if (url && apiKey) return serviceAt(url, { apiKey, foreign: true, close: async () => {} });
  if (url || apiKey) {
    throw new Error('expected both PET_API_URL and PET_API_KEY, to test that service, or neither, to test the sandbox');
  }
  const sandbox = await startSandbox();
  return serviceAt(sandbox.url, { apiKey: 'demo-free', foreign: false, close: () => sandbox.close() });
}

interface ServiceOptions extends Pick<Service, 'close' | 'foreign'> {
  readonly apiKey: string;
}

function serviceAt(url: string, { apiKey, foreign, close }: ServiceOptions): Service {
  const baseUrl = url.replace(/\/+$/, '');
  let requests = 0;
  let usedUp: Error | undefined;

  return {
    foreign,
    get requests() {
      return requests;
    },
    close,
    async send({ method, path }, { petId = '', query = '', body, key = apiKey } = {}) {
      if (usedUp) throw usedUp;
      requests += 1;
      const response = await fetch(baseUrl + path.replace('{petId}', petId) + query, {
        method,
        redirect: 'manual',
        headers: {
          accept: 'application/json',
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body }),
      });
      const answer = { status: response.status, headers: response.headers, text: await response.text() };
      if (answer.status === 429) {
        const wait = answer.headers.get('retry-after') ?? 'not given';
        usedUp = new Error(
          `the service answered 429 to request ${requests}: the key's plan is used up, so the contract could not be ` +
            `tested; run this again after the time in Retry-After (${wait})`,
        );
        throw usedUp;
      }
      return answer;
    },
  };
}
