/** Writes `before.csv`: the figures of this petql, with which `npm run verify -- guards` compares later ones. */
import { figuresOf } from './figures.ts';
import { GUARD_NAMES, openWithout } from './guarded-lines.ts';
import type { GuardName, Laboratory } from './guarded-lines.ts';
import { run } from './laboratory.ts';
import { MIXES, MIX_NAMES } from './mixes.ts';
import { storeFigures } from './stored-figures.ts';
import type { FiguresOf, RowName } from './stored-figures.ts';
import { QUIET, TRIGGERS, TRIGGER_NAMES, mixesOf, triggersOf } from './triggers.ts';
import type { TriggerName } from './triggers.ts';

const rows = new Map<RowName, FiguresOf>();

for (const mix of MIX_NAMES) rows.set(`quiet ${mix}`, { petql: figuresOf(await run(MIXES[mix], QUIET)) });
for (const trigger of TRIGGER_NAMES) await add(trigger, 'petql', { run });
for (const guard of GUARD_NAMES) {
  await using laboratory = await openWithout(guard);
  for (const trigger of triggersOf(guard)) await add(trigger, guard, laboratory);
}
storeFigures(rows);

async function add(trigger: TriggerName, of: GuardName | 'petql', laboratory: Pick<Laboratory, 'run'>): Promise<void> {
  for (const mix of mixesOf(trigger)) {
    const name: RowName = `${trigger} ${mix}`;
    rows.set(name, { ...rows.get(name), [of]: figuresOf(await laboratory.run(MIXES[mix], TRIGGERS[trigger])) });
  }
}
