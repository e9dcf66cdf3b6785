import { figure } from '../common/figure.ts';
import { fileProblem } from '../store/file-store.ts';
import { PLAN_KEYS } from './sandbox/demo-keys.ts';
import type { SandboxOptions } from './sandbox/sandbox.ts';
import { STORIES, STORY_NAMES } from './sandbox/stories.ts';
import type { StoryName } from './sandbox/stories.ts';
import { version } from '../common/version.ts';
import type { SandboxConfig } from './config.ts';
import { bothNames } from './flags.ts';
import { listenError } from './listen-error.ts';
import type { Service } from './service.ts';

interface OpenOptions extends SandboxOptions, Partial<Pick<SandboxConfig, 'host' | 'port'>> {}

export interface ServedSandbox {
  /** The base URL, with its `/v1`. */
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Serves the sandbox alone. */
export async function serveSandbox({ host, port, sandboxFile, story }: SandboxConfig): Promise<Service> {
  const { url, close } = await openSandbox({ host, port, file: sandboxFile, story });
  const banner = `petql ${version}: sandbox of the pet API\n\n${describeSandbox(url, story)}`;
  return { banner, stop: close };
}

/** Starts the sandbox. */
export async function openSandbox({ host, port, ...options }: OpenOptions): Promise<ServedSandbox> {
  // Imported here, since a gateway over the real pet API does without it.
  const { createSandbox } = await import('./sandbox/sandbox.ts');
  try {
    // It serves for weeks, and nobody reads its calls.
    const { listen, close } = createSandbox({ ...options, maxCalls: 0 });
    const url = await listen({ host, port }).catch(async (error: unknown) => {
      await close();
      throw error;
    });
    return { url, close };
  } catch (error) {
    const isFile = (error as NodeJS.ErrnoException).code?.startsWith('ERR_SQLITE');
    if (!isFile) throw listenError(error, 'host', 'port');

    const problem = fileProblem(options.file ?? '', error);
    throw new Error(`${bothNames('sandboxFile')}: ${problem}`, { cause: error });
  }
}

/** Returns the address and the demo keys for a banner. Where every key has a story, any key will do. */
export function describeSandbox(url: string, story?: StoryName): string {
  if (story) return `Sandbox    ${url}\nAny key    ${STORIES[story].about}`;

  const plans = Object.entries(PLAN_KEYS).map(([key, { perMinute, perDay }]) =>
    keyRow(key, `${figure(perMinute)} calls per minute, ${figure(perDay)} per day`),
  );
  const stories = STORY_NAMES.map((name) => keyRow(`demo-${name}`, STORIES[name].about));
  return [`Sandbox    ${url}`, 'Demo keys', ...plans, 'Bad days', ...stories].join('\n');
}

function keyRow(key: string, text: string): string {
  return `           ${key.padEnd(16)} ${text}`;
}
