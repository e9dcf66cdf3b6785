import { WINDOWS } from '../../../src/quota/account/slots.ts';
import { accountFrom, pauseText } from './key-text.ts';
import { LineRun } from './line-run.ts';
import { edgeOf, initialOf, visitorOf } from './line-state.ts';
import type { Kind, LineOptions, LineState } from './line-state.ts';
import type { Model } from './search.ts';

/** How long petql is at work on something when the next thing happens. */
const TURNS = ['1 turn', '2 turns', '3 turns'];

/** The line of one key, on virtual time, with calls that come, leave and are answered in every order. */
export function createLineModel(options: LineOptions): Model<LineState> {
  return {
    initial: () => initialOf(options),
    actions: (state) => actionsOf(state, options.kinds),

    async apply(state, action) {
      using run = await LineRun.start(options, state.way);
      const problems = await run.act(action);
      Object.assign(state, run.state);
      return problems;
    },

    async progress({ way }) {
      using run = await LineRun.start(options, way);
      return await run.end();
    },

    keyOf({ account, isStopping, left, nowMs, pause, unsettled, ...state }) {
      const waiters = state.waiters.map(({ deadlineMs, isPromised, kind }) => [kind, deadlineMs - nowMs, isPromised]);
      const flying = state.flying.map((call) => [visitorOf(call.kind), call.grantedAtMs - nowMs, call.isAnswered]);
      const sent = state.sent.map(({ atMs, visitor }) => [visitor, atMs - nowMs]);
      const rest = nowMs % WINDOWS.day.slotMs;
      const seen = [waiters, flying, sent, left, pauseText(pause, nowMs), isStopping, unsettled];
      return JSON.stringify([rest, accountFrom(account, nowMs), seen]);
    },
  };
}

function actionsOf(state: LineState, kinds: readonly Kind[]): string[] {
  const { flying, isStopping, left, unsettled, waiters } = state;
  const actions: string[] = [];
  if (left.arrivals > 0 && !isStopping) actions.push(...kinds.map((kind) => `come ${kind}`));
  for (const { id, kind } of waiters) actions.push(`leave ${id} (${kind})`);
  for (const { id, isAnswered } of flying) {
    if (!isAnswered) actions.push(`respond ${id}`);
    if (!isAnswered && left.limited > 0) actions.push(`refuse ${id}`);
  }
  if (!isStopping) actions.push('stop');
  if (left.races > 0) actions.push(...actions.flatMap((action) => TURNS.map((turns) => `${action}; ${turns}`)));
  if (edgeOf(state) < Infinity && flying.length + unsettled.length === 0) {
    actions.push('pass to the next edge');
    if (left.delays > 0) actions.push('pass to the next edge, and petql is late');
  }
  return actions;
}
