import { accessSync, constants, statSync } from 'node:fs';

/**
 * Returns why a file cannot be used as a database and what to do, as the end of "cannot use FILE:".
 *
 * @param error the error when it was opened or first written.
 * @param lost what a new file lacks.
 */
export function whyUnusable(path: string, error: unknown, lost: string): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (isSomethingElse(path)) return 'it is no regular file; name another';
  // A message of the operating system contains the path, which may contain any word.
  if (code.startsWith('E') && !code.startsWith('ERR_')) return WHY_REFUSED[code] ?? message;
  // SQLite says so where it cannot write the file, or files beside it.
  if (message.includes('readonly')) return isWritable(path) ? FOLDER_REFUSED : (WHY_REFUSED['EACCES'] ?? message);
  const why = Object.entries(WHY_UNUSABLE).find(([sign]) => message.includes(sign))?.[1];
  return why ? why.replace(START_NEW, `${START_NEW}, without ${lost}`) : message;
}

/** Returns whether it is a folder, a pipe or a device: SQLite's message for these does not help. */
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
  "its folder cannot be written, where SQLite makes files beside it; make petql's user the owner of the folder";

/** By the operating system's code. */
const WHY_REFUSED: Readonly<Record<string, string>> = {
  EACCES: "it cannot be written; make petql's user the owner of it and its folder",
  EROFS: 'it cannot be written; its file system is read-only',
};

const START_NEW = 'move it away to start with a new one';

/** By a part of SQLite's message. */
const WHY_UNUSABLE: Readonly<Record<string, string>> = {
  locked: 'another process uses it',
  'unable to open': 'its folder is missing or cannot be written; create it first',
  'is full': 'its disk is full; free some space, or name another file',
  'disk I/O': 'its disk fails or is full; free some space, or name another file',
  malformed: `it is damaged; ${START_NEW}`,
  newer: `it was written by a newer petql; use that one, or ${START_NEW}`,
  damaged: `it is damaged; ${START_NEW}`,
  'not a database': `it is no petql file; name another, or ${START_NEW}`,
};
