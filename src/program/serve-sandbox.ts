import { figure } from '../figure.ts';
import { fileProblem } from '../store/file-store.ts';
import { DEMO_KEYS } from '../sandbox/usage-limits.ts';
import type { Sandbox, SandboxOptions } from '../sandbox/sandbox.ts';
import { version } from '../version.ts';
import type { SandboxConfig } from './config.ts';
import { bothNames } from './flags.ts';
import { listenError } from './listen-error.ts';
import type { Service } from './service.ts';

/** Serves the sandbox alone. */
export async function serveSandbox({ host, port, sandboxFile }: SandboxConfig): Promise<Service> {
  const sandbox = await openSandbox({ host, port, file: sandboxFile });
  const banner = `petql ${version}: sandbox of the pet API\n\n${describeSandbox(sandbox)}`;
  return { banner, stop: () => sandbox.close() };
}

/** Starts the sandbox. */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  // Imported here, since a gateway over the real pet API does without it.
  const { startSandbox } = await import('../sandbox/sandbox.ts');
  try {
    return await startSandbox(options);
  } catch (error) {
    const isFile = (error as NodeJS.ErrnoException).code?.startsWith('ERR_SQLITE');
    if (!isFile) throw listenError(error, 'host', 'port');

    const problem = fileProblem(options.file ?? '', error);
    throw new Error(`${bothNames('sandboxFile')}: ${problem}`, { cause: error });
  }
}

/** Returns the address and the demo keys for a banner. */
export function describeSandbox({ url }: Sandbox): string {
  const keys = Object.entries(DEMO_KEYS).map(
    ([key, { name, perMinute, perDay }]) =>
      `           ${key.padEnd(16)} ${name}: ${figure(perMinute)} calls per minute, ${figure(perDay)} per day`,
  );
  return [`Sandbox    ${url}`, 'Demo keys', ...keys].join('\n');
}
