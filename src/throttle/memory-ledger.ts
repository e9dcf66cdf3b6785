import { randomUUID } from 'node:crypto';
import type { Log } from '../log.ts';
import type { StateFile } from '../store/state-file.ts';
import type { Exchange, Ledger } from './ledger.ts';
import { readState } from './kept-state.ts';
import { exchange, newLedgerState } from './ledger-state.ts';
import type { LedgerRules, LedgerState } from './ledger-state.ts';
import { createRestingStates } from './resting-states.ts';
import { add, MINUTE_SLOTS, slotOf } from './slot-counts.ts';

export interface MemoryLedgerOptions {
  readonly rules: LedgerRules;
  /** Milliseconds since the epoch that never go back. */
  readonly now: () => number;
  readonly log: Log;
  /** Whether nobody can have called the upstream before this process did. Default false. */
  readonly firstEver?: boolean;
  /** Where the states outlive the process. Default: they do not. */
  readonly kept?: KeptStates;
}

export interface KeptStates {
  readonly file: StateFile;
  /** What a caller is called in the file, where its key must not stand. */
  nameOf(apiKey: string): string;
}

/** States are written this long after they changed, or as soon as a share of the day was granted since. */
const WRITE_AFTER_MS = 100;
/** Half of the reserve that is kept back of a day (ledger-state.ts): a crash loses less than the reserve. */
const UNWRITTEN_SHARE = 200;
const FORGOTTEN_AFTER_MS = 8 * 86_400_000;

/** The ledger of one process. */
export function createMemoryLedger({ rules, now, log, kept, firstEver = false }: MemoryLedgerOptions): Ledger {
  const states = createRestingStates(rules, now);
  /** States are lost with the process, all of them at once: one name does for what every caller's has been since. */
  const generation = randomUUID();
  const startedAtMs = now();
  const forgetting = setInterval(() => states.forget(), 3_600_000).unref();
  /** Changed since they were written, with what had been started by then. */
  const unwritten = new Map<string, number>();
  let writing: NodeJS.Timeout | undefined;
  let riskTold = firstEver || kept !== undefined;
  let writes = true;
  let reads = true;
  let triedAtMs = -Infinity;
  let closed = false;
  kept?.file.forget(FORGOTTEN_AFTER_MS);

  return {
    exchange(apiKey, request) {
      const state = stateOf(apiKey);
      const startedBefore = state.started;
      const standing = exchange(state, request, rules, now());
      // Whoever only looks leaves nothing behind: keys that somebody made up take no room.
      if (request.reports.length + standing.grants.length > 0) {
        states.set(apiKey, state);
        // What comes later than the end is of no use to anybody.
        if (kept && !closed) keep(apiKey, request, startedBefore);
      }
      if (standing.day.mode === 'counted' && !riskTold) tellRisk();
      return Promise.resolve(standing);
    },
    close() {
      closed = true;
      clearInterval(forgetting);
      write();
      clearTimeout(writing);
      kept?.file.close();
      return Promise.resolve();
    },
  };

  function stateOf(apiKey: string): LedgerState {
    const known = states.get(apiKey);
    if (known) return known;
    const fresh = newLedgerState(generation, rules);
    const stored = kept && read(kept, apiKey);
    if (stored === undefined) return fresh;
    const { state, whole } = readState(stored, fresh);
    if (!whole) {
      log.warn({}, 'what the state file has of one key makes no sense; what was spent with it is found out anew');
      // It is told once, and not to each that looks.
      states.set(apiKey, state);
    }
    return kept?.file.unclean ? afterUncleanEnd(resumed(state), startedAtMs) : resumed(state);
  }

  /** Where it fails, as where nothing was kept: a probe finds out what is left. */
  function read(from: KeptStates, apiKey: string): string | undefined {
    try {
      const stored = from.file.get(stateName(from, apiKey));
      reads = true;
      return stored;
    } catch (error) {
      if (reads)
        log.error(
          { reason: (error as Error).message },
          'the state file cannot be read; what was spent before is not known of keys that were not used since the start',
        );
      reads = false;
      return undefined;
    }
  }

  function keep(apiKey: string, { reports }: Exchange, startedBefore: number): void {
    const state = stateOf(apiKey);
    const startedWhenWritten = unwritten.get(apiKey) ?? startedBefore;
    unwritten.set(apiKey, startedWhenWritten);
    const urgent =
      state.started - startedWhenWritten > mostUnwritten(state) || reports.some(({ kind }) => kind === 'refused');
    // A file that cannot be written is not tried again for each call.
    if (urgent && (writes || now() - triedAtMs >= WRITE_AFTER_MS)) write();
    else writing ??= setTimeout(write, WRITE_AFTER_MS).unref();
  }

  function write(): void {
    clearTimeout(writing);
    writing = undefined;
    if (!kept || unwritten.size === 0) return;
    try {
      kept.file.setAll(
        [...unwritten.keys()].map((apiKey) => [stateName(kept, apiKey), JSON.stringify(stateOf(apiKey))]),
      );
      unwritten.clear();
      writes = true;
    } catch (error) {
      // The calls are still counted here; what is at risk is the next start, until there is room again.
      if (writes)
        log.error({ reason: (error as Error).message }, 'the state file cannot be written; a restart will forget');
      writes = false;
      triedAtMs = now();
      writing = setTimeout(write, WRITE_AFTER_MS).unref();
    }
  }

  function tellRisk(): void {
    riskTold = true;
    log.warn(
      {},
      'calls made earlier today are not known: no header tells of the day, and there is no state file and no Redis; ' +
        'until tomorrow the plans may be overrun',
    );
  }
}

function stateName({ nameOf }: KeptStates, apiKey: string): string {
  return `ledger:${nameOf(apiKey)}`;
}

/**
 * A state after a restart: what calls have found of the minute since it was written is not known. That nothing was left of it
 * stays true. The file is of one process, so that another plan than the last one is news, whenever it was had before.
 */
function resumed(state: LedgerState): LedgerState {
  const { minute, started } = state;
  if (minute.mode === 'told' && minute.ceiling > started) minute.mode = 'unknown';
  state.probeUntilMs = 0;
  state.configuredAtMs = {};
  return state;
}

/** Starts that may be lost with the process, where the file can be written. */
function mostUnwritten({ day }: LedgerState): number {
  return Math.max(1, Math.floor(day.limit / UNWRITTEN_SHARE)) - 1;
}

/**
 * What was started last is not in the state. Of a day that is counted, a reserve makes up for it; of a minute, it counts as
 * started when the process after it began; and of what was told, a probe finds out before anything else is sent.
 */
function afterUncleanEnd(state: LedgerState, startedAtMs: number): LedgerState {
  const lost = mostUnwritten(state);
  if (lost > 0) add(state.minuteStarts, slotOf(startedAtMs, MINUTE_SLOTS.lengthMs), lost);
  state.mustProbe = true;
  return state;
}
