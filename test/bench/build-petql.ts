import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The program as npm has it: plain JavaScript, as the peers are. */
export const PETQL = `${ROOT}dist/main.js`;

export function buildPetql(): void {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit' });
}
