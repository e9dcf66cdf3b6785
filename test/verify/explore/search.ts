import { hash } from 'node:crypto';

/** What is explored: states that are plain JSON, and what can happen in each. */
export interface Model<State> {
  readonly initial: () => State;
  /** The names of all that can happen in a state. */
  readonly actions: (state: State) => readonly string[];
  /** Changes the state by an action. Returns what is broken by it. */
  readonly apply: (state: State, action: string) => readonly string[];
  /** Returns the same text for states from which the same can happen. */
  readonly keyOf: (state: State) => string;
  /** Returns what can never happen from here. Called once for each state; may change the copy that it gets. */
  readonly progress: (state: State) => readonly string[];
}

export interface SearchLimits {
  readonly maxDepth: number;
  readonly maxStates: number;
}

export interface Search {
  readonly states: number;
  readonly transitions: number;
  /** All states are at most this many actions from the first one, or were not looked at. */
  readonly depth: number;
  /** Whether every state within `maxDepth` was seen. */
  readonly isComplete: boolean;
  /** Whether nothing is left beyond `maxDepth` either. */
  readonly isClosed: boolean;
  readonly violation?: Violation;
}

export interface Violation {
  readonly problems: readonly string[];
  /** The shortest way to it. */
  readonly actions: readonly string[];
}

/** The state, and where it comes from: a row of the table of states seen. */
interface Row {
  readonly parent: number;
  readonly action: string;
}

/** Explores every order of events, the shortest first, up to the first violation. */
export function search<State>(model: Model<State>, { maxDepth, maxStates }: SearchLimits): Search {
  const rows: Row[] = [{ parent: -1, action: '' }];
  const seen = new Set<string>();
  let transitions = 0;
  let frontier: { readonly row: number; readonly text: string }[] = [];

  const initial = model.initial();
  seen.add(digestOf(model.keyOf(initial)));
  frontier.push({ row: 0, text: JSON.stringify(initial) });

  for (let depth = 0; depth < maxDepth; depth += 1) {
    const next: typeof frontier = [];
    for (const { row, text } of frontier) {
      for (const action of model.actions(JSON.parse(text) as State)) {
        const state = JSON.parse(text) as State;
        const problems = model.apply(state, action);
        transitions += 1;
        if (problems.length > 0) return found(problems, row, action, depth + 1);

        const digest = digestOf(model.keyOf(state));
        if (seen.has(digest)) continue;
        if (seen.size >= maxStates) return { ...counts(depth), isComplete: false, isClosed: false };
        seen.add(digest);
        rows.push({ parent: row, action });
        const reached = JSON.stringify(state);
        const stuck = model.progress(state);
        if (stuck.length > 0) return found(stuck, row, action, depth + 1);
        next.push({ row: rows.length - 1, text: reached });
      }
    }
    frontier = next;
    if (frontier.length === 0) return { ...counts(depth + 1), isComplete: true, isClosed: true };
  }
  return { ...counts(maxDepth), isComplete: true, isClosed: false };

  function counts(depth: number) {
    return { states: seen.size, transitions, depth };
  }

  function found(problems: readonly string[], row: number, action: string, depth: number): Search {
    return {
      ...counts(depth),
      isComplete: false,
      isClosed: false,
      violation: { problems, actions: wayTo(row, action) },
    };
  }

  function wayTo(last: number, action: string): string[] {
    const actions = [action];
    for (let row = rows[last]; row && row.parent >= 0; row = rows[row.parent]) actions.push(row.action);
    return actions.toReversed();
  }
}

/** Runs the actions of a trace again. Returns what is broken, and after which action. */
export function replay<State>(
  model: Model<State>,
  actions: readonly string[],
  print: (text: string) => void,
): string[] {
  const state = model.initial();
  for (const action of actions) {
    if (!model.actions(state).includes(action)) return [`"${action}" cannot happen here`];
    const problems = [...model.apply(state, action)];
    print(action);
    if (problems.length === 0) problems.push(...model.progress(JSON.parse(JSON.stringify(state)) as State));
    if (problems.length > 0) return problems;
  }
  return [];
}

/** Two keys have the same digest once in 10^30 pairs, so it is as good as the text and takes less memory. */
function digestOf(key: string): string {
  return hash('md5', key, 'base64');
}
