import { rowOf } from '../support/tally.ts';
import type { Row } from '../support/tally.ts';
import { findStale } from './changed-copy.ts';
import { figuresOf, shortfallsOf } from './guards/figures.ts';
import type { Figures } from './guards/figures.ts';
import { GUARDS, GUARD_NAMES, openWithout } from './guards/guarded-lines.ts';
import type { GuardName, Laboratory } from './guards/guarded-lines.ts';
import { SEED, run } from './guards/laboratory.ts';
import { MIXES, MIX_NAMES } from './guards/mixes.ts';
import { OUTAGES, judgeOutage } from './guards/outages.ts';
import { judgePauses } from './guards/pauses.ts';
import { readFiguresBefore } from './guards/stored-figures.ts';
import { tableOf } from './guards/table.ts';
import type { TableLine } from './guards/table.ts';
import { QUIET, TRIGGERS, TRIGGER_NAMES, mixesOf, triggersOf } from './guards/triggers.ts';
import type { TriggerName } from './guards/triggers.ts';
import type { Check, Suite } from './suite.ts';

/** How much less than without a guard honest clients may get with it, where a trigger turns it against them. */
const MAX_LOSS = 0.03;
/** Of few: chance decides which operations meet a fault. */
const MAX_LOST = 1;
/** One minute of the plan. */
const MAX_MORE_TOLD_S = 60;
const MAX_MORE_CALLS = 0.05;
/** What a guard is worth at least, in one mix of a trigger that it is there for. */
const MIN_GAIN = { calls: 10, fresh: 5 };

/** petql's own guards, each turned against the clients that it is there for: what do they lose, and what is it worth? */
export const guards: Suite = {
  about: 'what each guard of petql costs honest clients when something goes wrong, and what it is worth',
  seed: SEED,
  checks: [
    { name: 'quiet', goal: 'where nothing goes wrong, all is fresh, and calls are 5 % more at most', run: judgeQuiet },
    ...GUARD_NAMES.map(checkOf),
    ...OUTAGES.map((outage) => ({
      name: `outage-${outage.minutes}`,
      goal: 'an API that is down gets few calls, and none of strangers; reads come back soon',
      run: async () => [await judgeOutage(outage)],
    })),
    {
      name: 'pauses',
      goal: 'a 429 at any moment costs its own pause, and at most a round trip’s reads',
      run: async ({ seed }) => [await judgePauses(seed)],
    },
  ],
};

/** One guard where it is there for, and whether all others can still be turned off. */
export async function compareBriefly(promise: string): Promise<readonly Row[]> {
  const stale = await findStale(Object.values(GUARDS));
  const problems = stale.map(({ file, from }) => `expected once in src/${file}: ${from}`);
  const row = rowOf({ promise, looked: GUARD_NAMES.length, problems, measured: '' });
  const [trigger, guard] =
    TRIGGER_NAMES.flatMap((name) => (TRIGGERS[name].worth ?? []).map((of) => [name, of] as const))[0] ?? [];
  if (trigger === undefined || guard === undefined || problems.length > 0) return [row];

  // Chance decides what few calls meet, so what a guard is worth is said for one seed.
  await using without = await openWithout(guard);
  return [row, judgeWorth(guard, await compare(trigger, without, SEED))];
}

async function judgeQuiet({ seed }: { readonly seed: number }): Promise<readonly Row[]> {
  const before = readFiguresBefore();
  const problems: string[] = [];
  const measured: string[] = [];
  for (const mix of MIX_NAMES) {
    const { calls, failed } = figuresOf(await run(MIXES[mix], QUIET, { seed }));
    const were = before.get(`quiet ${mix}`)?.petql;
    measured.push(`${mix} ${calls}, before ${were?.calls}`);
    if (seed !== SEED || !were) continue;
    if (calls > were.calls * (1 + MAX_MORE_CALLS)) problems.push(`${mix}: ${calls} calls, before ${were.calls}`);
    if (failed > were.failed + MAX_LOST) problems.push(`${mix}: ${failed} reads failed, before ${were.failed}`);
  }
  const promise = 'where nothing goes wrong, nothing costs more';
  return [rowOf({ promise, looked: MIX_NAMES.length, problems, measured: measured.join('; ') })];
}

function checkOf(guard: GuardName): Check {
  return {
    name: guard,
    goal: `costs honest clients 3 % at most, and is worth it: ${GUARDS[guard].rule}`,
    run: async ({ seed, print }) => {
      await using without = await openWithout(guard);
      const lines: TableLine[] = [];
      for (const trigger of triggersOf(guard)) lines.push(...(await compare(trigger, without, seed)));
      print(tableOf(guard, lines));
      return [...judgeLosses(guard, lines), judgeWorth(guard, lines)];
    },
  };
}

async function compare(trigger: TriggerName, without: Laboratory, seed: number): Promise<TableLine[]> {
  const before = seed === SEED ? readFiguresBefore() : undefined;
  const lines: TableLine[] = [];
  for (const mix of mixesOf(trigger)) {
    const ended = await run(MIXES[mix], TRIGGERS[trigger], { seed });
    lines.push({
      mix,
      trigger,
      petql: figuresOf(ended),
      shortfalls: shortfallsOf(ended, TRIGGERS[trigger].goal ?? {}),
      without: figuresOf(await without.run(MIXES[mix], TRIGGERS[trigger], { seed })),
      before: before?.get(`${trigger} ${mix}`),
    });
  }
  return lines;
}

/** A row for each trigger that turns the guard against honest clients, over all mixes. */
function judgeLosses(guard: GuardName, lines: readonly TableLine[]): Row[] {
  const against = Map.groupBy(lines, ({ trigger }) => trigger);
  return [...against].flatMap(([trigger, own]) => {
    const { about, by, against: guardsOff = [] } = TRIGGERS[trigger];
    if (!guardsOff.includes(guard)) return [];
    const promise = `${trigger} (${by}): ${about}`;
    return rowOf({ promise, looked: own.length, problems: own.flatMap(problemsOfLoss), measured: '', figures: own });
  });
}

/** What the honest clients lose to the guard, or to a goal of the trigger's own. */
function problemsOfLoss({ mix, trigger, petql, without, shortfalls }: TableLine): string[] {
  if (TRIGGERS[trigger].goal) return mix === 'page' ? shortfalls.map((text) => `${mix}: ${text}`) : [];

  const lost = (['fresh', 'served', 'creates'] as const).flatMap((name) => {
    const [has, could] = [valueOf(petql, name), valueOf(without, name)];
    const isEnough = has >= could * (1 - MAX_LOSS) - MAX_LOST;
    return isEnough ? [] : [`${mix}: ${has} ${name}, ${could} without the guard`];
  });
  const isToldMore = petql.told > without.told + MAX_MORE_TOLD_S;
  return isToldMore
    ? [...lost, `${mix}: told to return after ${petql.told} s, ${without.told} without the guard`]
    : lost;
}

function valueOf({ fresh, stale, creates }: Figures, name: 'creates' | 'fresh' | 'served'): number {
  return { fresh, served: fresh + stale, creates }[name];
}

/** Some trigger shows that the guard saves calls or reads, or it has another reason. */
function judgeWorth(guard: GuardName, lines: readonly TableLine[]): Row {
  const worth = lines.filter(({ trigger }) => TRIGGERS[trigger].worth?.includes(guard));
  const gains = worth.map(({ petql, without }) => ({
    calls: without.calls - petql.calls,
    fresh: petql.fresh - without.fresh,
  }));
  const isWorth = gains.some(({ calls, fresh }) => calls >= MIN_GAIN.calls || fresh >= MIN_GAIN.fresh);
  const { reason } = GUARDS[guard];
  const most = (name: 'calls' | 'fresh') => Math.max(0, ...gains.map((gain) => gain[name]));
  return rowOf({
    promise: `the guard is worth it: ${GUARDS[guard].rule}`,
    looked: worth.length,
    problems: isWorth || reason !== undefined ? [] : ['it saves fewer than ten calls and five fresh reads in each mix'],
    measured: reason ?? `saves up to ${most('calls')} calls, ${most('fresh')} fresh reads`,
    figures: worth,
  });
}
