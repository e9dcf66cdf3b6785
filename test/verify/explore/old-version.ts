import type { Account } from '../../../src/quota/account/format.ts';

/** What version 0.3 did not know, by where it stands: it reads an account without that, and writes it so. */
const NEW_IN_ACCOUNT = ['paceLesson', 'fasterSinceMs'];
const NEW_IN_WINDOW = ['lesson', 'foreignLesson'];

/** Drops from an account what version 0.3 does not read or write. */
export function dropNewFields(account: Account): void {
  drop(account, NEW_IN_ACCOUNT);
  drop(account.minute, NEW_IN_WINDOW);
  drop(account.day, NEW_IN_WINDOW);
}

function drop(from: object, names: readonly string[]): void {
  for (const name of names) Reflect.deleteProperty(from, name);
}
