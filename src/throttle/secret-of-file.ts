import { KEY_SECRET } from '../store/state-file.ts';
import type { OpenStateFile } from '../store/state-file.ts';
import { createCallerNames, newSecret } from './caller-names.ts';
import { secretFingerprint } from './secret-fingerprint.ts';

const FINGERPRINT = `${KEY_SECRET}-fingerprint`;

/**
 * The secret that callers go by in this file: the one given, or else the one that is in it, made where there is none yet.
 *
 * @throws Error where the file was kept with another: nothing in it would be found, and every plan be spent once more. Of a file
 *   that does not say what it was kept with, as older ones do not, the secret given is believed.
 */
export function secretOfFile(file: OpenStateFile, given: string | undefined): string {
  const own = file.get(KEY_SECRET);
  const secret = given ?? own ?? file.keySecret(newSecret);
  const fingerprint = fingerprintOf(secret);
  const before = file.get(FINGERPRINT);
  if (before === fingerprint) return secret;
  if (before !== undefined) throw new Error(`it was kept with ${mismatch(given, own)}, or name another file`);
  try {
    file.setAll([[FINGERPRINT, fingerprint]]);
  } catch {
    // A full disk. The next start says so.
  }
  return secret;
}

function mismatch(given: string | undefined, own: string | undefined): string {
  if (given === undefined) return `a key secret, and none is given; ${FORGOTTEN}. Give it`;
  const instead =
    own === undefined ? 'Give that one' : 'Give that one, or none where none was given: it is in the file';
  return `another key secret than the one given; ${FORGOTTEN}. ${instead}`;
}

/** What is kept under names that another secret does not make. */
const FORGOTTEN = 'what was spent today, and what came of creations with an idempotencyKey, would be forgotten';

function fingerprintOf(secret: string): string {
  return secretFingerprint(createCallerNames(secret));
}
