import type { Log } from '../log.ts';
import type { NameOf } from '../store/names.ts';
import { applyEnd } from './account/call-end.ts';
import type { CallEnd } from './account/call-end.ts';
import type { Account, Permit } from './account/format.ts';
import type { AccountRules } from './account/limits.ts';
import { passTime } from './account/pass-time.ts';

/** Changes an account in place. Over Redis it runs again when another replica wrote first. */
export type AccountChange<Result> = (account: Account, nowMs: number, rules: AccountRules) => Result;

/** What the headers of a response have changed in an account. */
interface Correction {
  readonly headers: unknown;
  readonly before: ReturnType<typeof countsOf>;
  readonly after: ReturnType<typeof countsOf>;
}

/** Returns the change that settles a permit by the end of its call. Its result is what to log, where anybody reads it. */
export function settlementOf(
  permit: Permit,
  end: CallEnd,
  { log }: { readonly log: Log },
): AccountChange<Correction | undefined> {
  const isLogged = log.debug !== undefined && 'headers' in end;
  return (account, nowMs, rules) => {
    if (!isLogged) {
      applyEnd(account, permit, end, { nowMs, rules });
      return undefined;
    }

    passTime(account, { nowMs, rules });
    const before = countsOf(account);
    applyEnd(account, permit, end, { nowMs, rules });
    return { headers: end.headers, before, after: countsOf(account) };
  };
}

/** Logs that headers have lowered or raised a count, or named a limit. */
export function logCorrection(
  apiKey: string,
  { headers, before, after }: Correction,
  { log, nameOf }: { readonly log: Log; readonly nameOf: NameOf },
): void {
  if (JSON.stringify(before) === JSON.stringify(after)) return;
  log.debug?.({ key: nameOf(apiKey), headers, before, after }, 'count corrected');
}

function countsOf({ minute, day }: Account) {
  return {
    minute: { used: minute.total, limit: minute.limit },
    day: { used: day.total, limit: day.limit },
  };
}
