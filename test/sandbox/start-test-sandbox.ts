import { parseLosslessJson } from '../../src/common/lossless-json.ts';
import { createSandbox } from '../../src/program/sandbox/sandbox.ts';
import type { Sandbox, SandboxOptions } from '../../src/program/sandbox/sandbox.ts';

/** In the middle of a minute and of a day. */
export const START_MS = Date.UTC(2026, 0, 5, 10, 30, 15);

/** A sandbox whose clock stands still until a test moves it. */
export interface TestSandbox extends Sandbox {
  /** Where it listens. */
  readonly url: string;
  readonly clock: { nowMs: number };
  /** Sends one request, such as "GET /pets", by default with the Free demo key. */
  readonly call: (request: string, options?: CallOptions) => Promise<SandboxAnswer>;
}

export interface CallOptions {
  /** Null for none. */
  readonly key?: string | null;
  readonly body?: string;
}

export interface SandboxAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** With every digit of its int64. */
  readonly body: any;
}

export async function startTestSandbox(options: SandboxOptions = {}): Promise<TestSandbox> {
  const clock = { nowMs: START_MS };
  const sandbox = createSandbox({ clock: { now: () => clock.nowMs }, ...options });
  const url = await sandbox.listen();
  return {
    ...sandbox,
    url,
    clock,
    async call(request, { key = 'demo-free', body } = {}) {
      const [method = '', path = ''] = request.split(' ');
      const response = await fetch(url + path, {
        method,
        headers: key === null ? {} : { authorization: `Bearer ${key}` },
        ...(body === undefined ? {} : { body }),
      });
      return { status: response.status, headers: response.headers, body: parseLosslessJson(await response.text()) };
    },
  };
}
