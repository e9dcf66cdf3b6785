import { accessSync, constants, statSync } from 'node:fs';

/**
 * Why a database cannot be kept under this path, and what to do about it, in words that fit behind "cannot use FILE:".
 *
 * @param error what was thrown when it was opened or first written.
 * @param lost what is not there any more for whoever begins with a new file.
 */
export function whyUnusable(path: string, error: unknown, lost: string): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (isSomethingElse(path)) return 'it is no plain file; name another';
  // What the operating system says has the path in it, which may hold any word.
  if (code.startsWith('E') && !code.startsWith('ERR_')) return WHY_REFUSED[code] ?? message;
  // SQLite says that of a file that it may not write, and of a folder where it may make none beside it.
  if (message.includes('readonly')) return isWritable(path) ? FOLDER_REFUSED : (WHY_REFUSED['EACCES'] ?? message);
  const why = Object.entries(WHY_UNUSABLE).find(([sign]) => message.includes(sign))?.[1];
  return why ? why.replace(BEGIN_ANEW, `${BEGIN_ANEW}, without ${lost}`) : message;
}

/** A folder, a pipe or a device: SQLite says of each something else, and nothing that helps. */
function isSomethingElse(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === false;
  } catch {
    return false;
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

const FOLDER_REFUSED =
  'its folder may not be written, and SQLite makes files beside it; give the folder to the user that petql runs as';

/** By the operating system's code. */
const WHY_REFUSED: Readonly<Record<string, string>> = {
  EACCES: 'it cannot be written; give it and its folder to the user that petql runs as',
  EROFS: 'it cannot be written; it is on a file system that is only read',
};

const BEGIN_ANEW = 'move it away to begin anew';

/** By a part of what SQLite says. */
const WHY_UNUSABLE: Readonly<Record<string, string>> = {
  locked: 'another process uses it',
  'unable to open': 'its own folder is not there or may not be written; make that first',
  'is full': 'there is no room on its disk; make some, or name another file',
  'disk I/O': 'its disk fails, or gives it no more room; make some, or name another file',
  malformed: `it is damaged; ${BEGIN_ANEW}`,
  newer: `it was written by a newer petql; use that one, or ${BEGIN_ANEW}`,
  damaged: `it is damaged; ${BEGIN_ANEW}`,
  'not a database': `it is something else; name another, or ${BEGIN_ANEW}`,
};
