import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Installs what petql is compared with, into a folder of its own, where that has not been done. No script of it is run. */
export function installPeers(say: (text: string) => void): void {
  const folder = fileURLToPath(new URL('peers/', import.meta.url));
  const asked = readFileSync(`${folder}package-lock.json`, 'utf8');
  const stamp = `${folder}node_modules/.package-lock.json`;
  if (existsSync(stamp) && isInstalled(asked, readFileSync(stamp, 'utf8'))) return;
  say('Installing what petql is compared with …');
  execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: 'inherit',
  });
}

function isInstalled(asked: string, installed: string): boolean {
  const versions = (text: string) => {
    const { packages } = JSON.parse(text) as { packages: Record<string, { version?: string; optional?: boolean }> };
    return new Map(Object.entries(packages).map(([path, { version }]) => [path, version]));
  };
  const there = versions(installed);
  return [...versions(asked)].every(([path, version]) => path === '' || there.get(path) === version);
}
