import { ACCOUNT } from '../../../src/quota/account/format.ts';
import type { Account } from '../../../src/quota/account/format.ts';

/** Of the same text, so that each account is parsed once. */
const valid = new Map<string, boolean>();

/** Whether the stored format allows the account. */
export function isValid(account: Account): boolean {
  const text = JSON.stringify([account.minute.counts, account.day.counts, account.minute.total, account.day.total]);
  const known = valid.get(text);
  if (known !== undefined && known) return true;
  const result = ACCOUNT.safeParse(account).success;
  if (valid.size < 100_000) valid.set(text, result);
  return result;
}
