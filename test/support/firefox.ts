import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const NAMES = ['firefox-esr', 'firefox'];
/** The one that is installed; undefined where none is. Playwright drives its own build of Firefox only. */
export const firefoxPath = NAMES.find((name) => spawnSync(name, ['--version']).status === 0);

/** A page of Firefox, by WebDriver BiDi. */
export interface FirefoxPage extends AsyncDisposable {
  readonly goto: (url: string) => Promise<void>;
  /** Runs statements, whatever the policy of the page. */
  readonly run: (script: string) => Promise<void>;
  /** Returns the value of an expression or a promise that JSON can hold. */
  readonly evaluate: (expression: string) => Promise<any>;
  readonly setViewport: (width: number, height: number) => Promise<void>;
  /** Errors of its scripts, and what they print as an error. */
  readonly complaints: readonly string[];
}

/** Starts Firefox, which keeps cookies and site data or, as some people set it, blocks both. */
export async function startFirefox({ blocksSiteData = false } = {}): Promise<FirefoxPage> {
  if (firefoxPath === undefined) throw new Error('expected Firefox');
  const profile = await mkdtemp(join(tmpdir(), 'petql-firefox-'));
  const settings = { 'network.cookie.cookieBehavior': blocksSiteData ? 2 : 0, 'app.normandy.enabled': false };
  const lines = Object.entries(settings).map(([name, value]) => `user_pref("${name}", ${value});\n`);
  await writeFile(join(profile, 'user.js'), lines.join(''));

  const flags = ['--headless', '--no-remote', '--remote-debugging-port', '0', '--profile', profile];
  const firefox = spawn(firefoxPath, flags, { stdio: ['ignore', 'ignore', 'pipe'] });
  const address = await addressOf(firefox.stderr);
  const socket = new WebSocket(`${address}/session`);
  await once(socket, 'open');

  const answers = new Map<number, PromiseWithResolvers<any>>();
  const complaints: string[] = [];
  socket.addEventListener('message', ({ data }) => {
    const { id, type, result, message, params } = JSON.parse(String(data));
    if (type === 'success') answers.get(id)?.resolve(result);
    else if (type === 'error') answers.get(id)?.reject(new Error(message));
    else if (params?.level === 'error') complaints.push(params.text);
  });
  let sent = 0;
  const send = (method: string, params: object = {}): Promise<any> => {
    const answer = Promise.withResolvers<any>();
    answers.set((sent += 1), answer);
    socket.send(JSON.stringify({ id: sent, method, params }));
    return answer.promise;
  };

  await send('session.new', { capabilities: {} });
  await send('session.subscribe', { events: ['log.entryAdded'] });
  const { context } = await send('browsingContext.create', { type: 'tab' });
  return {
    goto: (url) => send('browsingContext.navigate', { context, url, wait: 'complete' }),
    run: (script) => send('script.evaluate', { expression: script, target: { context }, awaitPromise: false }),
    async evaluate(expression) {
      const json = `Promise.resolve(${expression}).then((value) => JSON.stringify(value ?? null))`;
      const params = { expression: json, target: { context }, awaitPromise: true };
      const { result, exceptionDetails } = await send('script.evaluate', params);
      if (exceptionDetails) throw new Error(exceptionDetails.text);
      return JSON.parse(result.value);
    },
    setViewport: (width, height) => send('browsingContext.setViewport', { context, viewport: { width, height } }),
    complaints,
    async [Symbol.asyncDispose]() {
      const exited = once(firefox, 'exit');
      firefox.kill();
      await exited;
      await rm(profile, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

async function addressOf(stderr: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(stderr)) {
    const [, address] = /WebDriver BiDi listening on (ws:\S+)/.exec(line) ?? [];
    if (address !== undefined) {
      stderr.resume();
      return address;
    }
  }
  throw new Error('Firefox ended before it could be reached');
}
