import { randomUUID } from 'node:crypto';
import type { Account, WindowCount } from './format.ts';
import { OTHER_WINDOW } from './limits.ts';
import { WINDOW_NAMES, add, addAll, countIn } from './slots.ts';
import type { WindowName } from './slots.ts';
import { beginTrust } from './trust.ts';

/** Adds what this replica used without Redis. Slots have absolute times, so each permit stays in its window. */
export function absorb(account: Account, own: Account): void {
  for (const name of WINDOW_NAMES) {
    addAll(account[name], own[name]);
  }

  account.isProven ||= own.isProven;
  account.granted += own.granted;
  account.lastGrantAtMs = Math.max(account.lastGrantAtMs, own.lastGrantAtMs);

  // A pause of an offline share without a 429 ends that share only.
  if (own.pause.incidents > 0) takeLaterPause(account, own);
  beginTrust(account, account.lastGrantAtMs);
}

/** Whether the stored account is older than the seen one: Redis lost a write or all data, or another replica restored less. */
export function hasLost(found: Account, seen: Account): boolean {
  return found.granted < seen.granted || found.epoch !== seen.epoch || found.pause.untilMs < seen.pause.untilMs;
}

/**
 * Restores an account of which Redis has lost some from the account as this replica saw it last: the larger count of each slot
 * holds. The epoch differs from the seen one afterwards, so permits that were granted before lower no count.
 */
export function restore(found: Account, seen: Account): void {
  const before = found.minute.total;
  for (const name of WINDOW_NAMES) dropMisnamed(found, seen, name);
  for (const name of WINDOW_NAMES) takeMore(found[name], seen[name]);
  found.granted = Math.max(found.granted + found.minute.total - before, seen.granted);
  if (found.epoch === seen.epoch) found.epoch = randomUUID();

  found.lastGrantAtMs = Math.max(found.lastGrantAtMs, seen.lastGrantAtMs);
  found.configured ??= seen.configured;
  found.isProven ||= seen.isProven;

  takeLaterPause(found, seen);
  // The one call that may go after a 429 may be under way.
  const isAfter429 = found.pause.incidents > 0;
  const underWay = isAfter429 ? [found.trust, seen.trust].find((trust) => trust?.calls === 0) : undefined;
  beginTrust(found, found.lastGrantAtMs);
  if (found.trust && underWay) Object.assign(found.trust, { calls: 0, againAtMs: underWay.againAtMs });
}

/**
 * Drops what headers have said of a window where the seen account knows their limit as the other window's: an account that was made
 * again has too few calls to tell a Business minute from a Free day, both of 1,000.
 */
function dropMisnamed(found: Account, seen: Account, name: WindowName): void {
  const { limit, isSure } = found[name];
  const isMisnamed = limit !== undefined && !isSure && limit === seen[OTHER_WINDOW[name]].limit;
  if (!isMisnamed || limit === seen[name].limit) return;
  Object.assign(found[name], { limit: undefined, foreign: undefined, reset: undefined, toldAtMs: undefined });
}

function takeMore(found: WindowCount, seen: WindowCount): void {
  for (const window of [found, seen]) {
    if (window.doubted) addAll(window, window.doubted);
    window.doubted = undefined;
  }
  for (const slot of seen.slots) add(found, slot, Math.max(0, countIn(seen, slot) - countIn(found, slot)));
  if (found.limit === undefined) Object.assign(found, { limit: seen.limit, isSure: seen.isSure });
  if ((found.toldAtMs ?? 0) < (seen.toldAtMs ?? 0)) {
    Object.assign(found, { foreign: seen.foreign, reset: seen.reset, toldAtMs: seen.toldAtMs });
  }
  for (const lesson of ['lesson', 'foreignLesson'] as const) {
    if ((found[lesson]?.sinceMs ?? 0) < (seen[lesson]?.sinceMs ?? 0)) found[lesson] = seen[lesson];
  }
}

function takeLaterPause({ pause: found }: Account, { pause: seen }: Account): void {
  if (seen.untilMs <= found.untilMs) return;

  found.untilMs = seen.untilMs;
  found.isBan = seen.isBan;
  found.incidents = Math.max(found.incidents, seen.incidents);
  found.incidentAtMs = Math.max(found.incidentAtMs, seen.incidentAtMs);
}
