import { StoreUnavailableError } from '../../../src/store/store.ts';
import type { Store } from '../../../src/store/store.ts';
import { UNKNOWN_OUTCOME } from '../../../src/writes/create-outcome.ts';
import type { CreateOutcome } from '../../../src/writes/create-outcome.ts';
import { IdempotencyRecords } from '../../../src/writes/records.ts';
import type { FoundRecord, Lease } from '../../../src/writes/records.ts';
import { addedProblem, outcomeProblem, storedProblem } from '../../support/write-rules.ts';
import type { Model } from './search.ts';

/** What may go wrong, and how often at most on one way. */
export interface RecordFaults {
  /** Redis does not carry out a command. */
  readonly refused: number;
  /** Redis carries out a command, and its reply is lost. */
  readonly mute: number;
  readonly emptied: number;
  /** The record becomes one that this version of petql cannot read. */
  readonly unreadable: number;
  /** A process is killed with its create. */
  readonly killed: number;
  /** The upstream gives no clear response to a create that it may have carried out. */
  readonly unclear: number;
}

export interface RecordsOptions {
  /** Submits of one idempotency key, by as many processes. */
  readonly submits: number;
  readonly startMs: number;
  readonly faults: Partial<RecordFaults>;
}

/** One submit: it leases the key, sends its create, and stores the outcome. */
interface Submit {
  phase: 'done' | 'leasing' | 'releasing' | 'sending' | 'storing';
  outcome?: CreateOutcome;
}

interface RecordsState {
  nowMs: number;
  text?: string;
  submits: Submit[];
  pets: number;
  faults: Record<keyof RecordFaults, number>;
  isEmptied: boolean;
}

const LEASE_MS = 60_000;
const INPUT = '["Rex","1",null]';
const NAME = 'api-key idempotency-key';
const UNREADABLE = 'unreadable';

/** The real idempotency records of one key over a store that may fail, and submits of it in every order. */
export function createRecordsModel(options: RecordsOptions): Model<RecordsState> {
  return {
    initial: () => ({
      nowMs: options.startMs,
      submits: Array.from({ length: options.submits }, () => ({ phase: 'leasing' as const })),
      pets: 0,
      faults: { refused: 0, mute: 0, emptied: 0, unreadable: 0, killed: 0, unclear: 0, ...options.faults },
      isEmptied: false,
    }),
    actions: actionsOf,
    async apply(state, action) {
      await run(state, action);
      return problemsOf(state);
    },
    progress,
    keyOf({ nowMs, text, submits, pets, faults, isEmptied }) {
      const isUnreadable = text === UNREADABLE;
      const record = text === undefined || isUnreadable ? undefined : (JSON.parse(text) as Record<string, unknown>);
      const times = record && [Number(record['openUntilMs']) - nowMs, Number(record['endsAtMs']) - nowMs];
      const owned = submits.map(({ phase, outcome }, index) =>
        JSON.stringify([phase, outcome, record?.['id'] === idOf(index)]),
      );
      return JSON.stringify([
        isUnreadable,
        record?.['outcome'],
        times?.map((ms) => Math.max(-1, ms)),
        owned.toSorted(),
        pets,
        faults,
        isEmptied,
      ]);
    },
  };

  function actionsOf({ faults, submits, text }: RecordsState): string[] {
    const actions: string[] = [];
    for (const [index, { phase }] of submits.entries()) {
      if (phase === 'done') continue;
      if (phase === 'sending') {
        actions.push(`send ${index}`, `fail ${index}`);
        if (faults.unclear > 0) actions.push(`unclear ${index}`, `unclear-and-added ${index}`);
      } else {
        actions.push(`store ${index}`);
        if (faults.refused > 0) actions.push(`refused ${index}`);
        if (faults.mute > 0) actions.push(`mute ${index}`);
      }
      if (faults.killed > 0) actions.push(`kill ${index}`);
    }
    if (faults.emptied > 0 && text !== undefined) actions.push('empty');
    if (faults.unreadable > 0 && text !== undefined) actions.push('make-unreadable');
    actions.push('pass');
    return actions;
  }

  async function run(state: RecordsState, action: string): Promise<void> {
    const { faults } = state;
    const [verb = '', index] = action.split(' ');
    const submit = state.submits[Number(index)];
    if (verb === 'pass') {
      // A submit ends before its lease does.
      state.nowMs += LEASE_MS + 1;
      for (const each of state.submits) if (each.phase === 'sending') each.phase = 'done';
      return;
    }
    if (verb === 'empty') {
      faults.emptied -= 1;
      state.isEmptied = true;
      delete state.text;
      return;
    }
    if (verb === 'make-unreadable') {
      faults.unreadable -= 1;
      state.text = UNREADABLE;
      return;
    }
    if (!submit) return;
    if (verb === 'send') {
      state.pets += 1;
      Object.assign(submit, { phase: 'storing', outcome: petNumber(state.pets) });
    } else if (verb === 'fail') submit.phase = 'releasing';
    else if (verb === 'unclear' || verb === 'unclear-and-added') {
      faults.unclear -= 1;
      if (verb.endsWith('added')) state.pets += 1;
      Object.assign(submit, { phase: 'storing', outcome: UNKNOWN_OUTCOME });
    } else if (verb === 'kill') {
      faults.killed -= 1;
      submit.phase = 'done';
    } else {
      if (verb !== 'store') faults[verb as 'mute' | 'refused'] -= 1;
      await useStore(state, Number(index), verb as Link);
    }
  }

  /** What Idempotency does with the store, one command at a time; a settled write that fails is tried again. */
  async function useStore(state: RecordsState, index: number, link: Link): Promise<void> {
    const submit = state.submits[index] as Submit;
    const records = recordsOver(state, link);
    const lease: Lease = { id: idOf(index), input: INPUT, ms: LEASE_MS };
    if (submit.phase === 'leasing') {
      try {
        const found = await records.lease(NAME, lease, true);
        if (found === undefined) submit.phase = 'sending';
        else if (found !== 'full') replay(submit, found);
      } catch {
        submit.phase = 'releasing';
      }
      return;
    }
    // A closed store tries once.
    await records.close();
    if (submit.phase === 'storing') await records.storeOutcome(NAME, lease, submit.outcome as CreateOutcome, true);
    else await records.release(NAME, lease);
    if (link === 'store') submit.phase = 'done';
  }

  function replay(submit: Submit, { leaseLeftMs, outcome }: FoundRecord): void {
    if (outcome === undefined && leaseLeftMs > 0) return;
    Object.assign(submit, { phase: 'done', outcome: outcome ?? UNKNOWN_OUTCOME });
  }

  /** After its lease, a new submit of the key gets a result. */
  async function progress(state: RecordsState): Promise<string[]> {
    for (const [index, { phase }] of state.submits.entries()) {
      if (phase === 'storing' || phase === 'releasing') await useStore(state, index, 'store');
    }
    await run(state, 'pass');
    state.submits = [{ phase: 'leasing' }];
    await useStore(state, 0, 'store');
    return state.submits[0]?.phase === 'leasing' ? ['a submit waits for ever'] : [];
  }
}

function problemsOf({ isEmptied, pets, submits }: RecordsState): string[] {
  const created = new Set(submits.flatMap(({ outcome }) => (outcome && 'pet' in outcome ? outcome.pet.id : [])));
  const stored = Array.from({ length: pets }, (_, index) => ({ id: String(index + 1) }));
  const problems = [...created].map((id) => storedProblem(id, stored));
  if (!isEmptied) problems.push(addedProblem(pets), outcomeProblem(created));
  return problems.filter((problem) => problem !== undefined);
}

type Link = 'mute' | 'refused' | 'store';

function recordsOver(state: RecordsState, link: Link): IdempotencyRecords {
  const store: Store = {
    async update(_name, change) {
      if (link === 'refused') throw new StoreUnavailableError('refused');
      change(state.text, state.nowMs);
      const { result, text } = change(state.text, state.nowMs);
      if (text === undefined) delete state.text;
      else state.text = text;
      if (link === 'mute') throw new StoreUnavailableError('mute');
      return result;
    },
    nowMs: () => state.nowMs,
    close: async () => {},
  };
  return new IdempotencyRecords(store, (text) => text, { info() {}, warn() {}, error() {} });
}

function idOf(index: number): string {
  return `lease ${index}`;
}

function petNumber(id: number): CreateOutcome {
  return { pet: { id: String(id), name: 'Rex', categoryId: '1', status: 'available' } } as unknown as CreateOutcome;
}
