import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Runs in the browser: keeps the page up to date. `npm run build` puts the text in place of this module. */
export const QUOTA_RELOAD = readFileSync(new URL('page/quota-reload.js', import.meta.url), 'utf8');

/** Allows this script alone: a source of Content-Security-Policy. */
export const QUOTA_RELOAD_SOURCE = `'sha256-${createHash('sha256').update(QUOTA_RELOAD).digest('base64')}'`;
