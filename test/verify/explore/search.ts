import { hash } from 'node:crypto';

/** What is explored: states that are plain JSON, and what can happen in each. */
export interface Model<State> {
  readonly initial: () => State;
  /** The names of all that can happen in a state. */
  readonly actions: (state: State) => readonly string[];
  /** Changes the state by an action. Returns what is broken by it. */
  readonly apply: (state: State, action: string) => Problems | Promise<Problems>;
  /** Returns the same text for states from which the same can happen. */
  readonly keyOf: (state: State) => string;
  /** Returns what can never happen from here. Called once for each state; may change the copy that it gets. */
  readonly progress: (state: State) => Problems | Promise<Problems>;
  /** Returns what the way to a state has cost, where a promise is a number. Part of the key. Default: nothing costs. */
  readonly costsOf?: (state: State) => Readonly<Record<string, number>>;
}

/** What is broken, a sentence each. */
type Problems = readonly string[];

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
  /** The highest of each cost, and the shortest way to it. */
  readonly costs: Readonly<Record<string, { readonly max: number; readonly actions: readonly string[] }>>;
}

export interface Violation {
  readonly problems: Problems;
  /** The shortest way to it. */
  readonly actions: readonly string[];
}

/** The state, and where it comes from: a row of the table of states seen. */
interface Row {
  readonly parent: number;
  readonly action: string;
}

/** Explores every order of events, the shortest first, up to the first violation. */
export async function search<State>(model: Model<State>, { maxDepth, maxStates }: SearchLimits): Promise<Search> {
  const rows: Row[] = [{ parent: -1, action: '' }];
  const seen = new Set<string>();
  let transitions = 0;
  const costliest = new Map<string, { readonly max: number; readonly row: number }>();
  let frontier: { readonly row: number; readonly text: string }[] = [];

  const initial = model.initial();
  seen.add(digestOf(model.keyOf(initial)));
  frontier.push({ row: 0, text: JSON.stringify(initial) });

  for (let depth = 0; depth < maxDepth; depth += 1) {
    const next: typeof frontier = [];
    for (const { row, text } of frontier) {
      const before = JSON.parse(text) as State;
      for (const action of model.actions(before)) {
        const state = copyOf(before);
        const problems = await model.apply(state, action);
        transitions += 1;
        if (problems.length > 0) return found(problems, row, action, depth + 1);

        const digest = digestOf(model.keyOf(state));
        if (seen.has(digest)) continue;
        if (seen.size >= maxStates) return { ...figures(depth), isComplete: false, isClosed: false };
        seen.add(digest);
        rows.push({ parent: row, action });
        for (const [name, cost] of Object.entries(model.costsOf?.(state) ?? {})) {
          if (cost > (costliest.get(name)?.max ?? 0)) costliest.set(name, { max: cost, row: rows.length - 1 });
        }

        const reached = JSON.stringify(state);
        const stuck = await model.progress(state);
        if (stuck.length > 0) return found(stuck, row, action, depth + 1);
        next.push({ row: rows.length - 1, text: reached });
      }
    }
    frontier = next;
    if (frontier.length === 0) return { ...figures(depth + 1), isComplete: true, isClosed: true };
  }
  return { ...figures(maxDepth), isComplete: true, isClosed: false };

  function figures(depth: number) {
    const costs = [...costliest].map(([name, { max, row }]) => [name, { max, actions: wayTo(row) }] as const);
    return { states: seen.size, transitions, depth, costs: Object.fromEntries(costs) };
  }

  function found(problems: Problems, row: number, action: string, depth: number): Search {
    const violation = { problems, actions: [...wayTo(row), action] };
    return { ...figures(depth), isComplete: false, isClosed: false, violation };
  }

  function wayTo(last: number): string[] {
    const actions: string[] = [];
    for (let row = rows[last]; row && row.parent >= 0; row = rows[row.parent]) actions.push(row.action);
    return actions.toReversed();
  }
}

/** Runs the actions of a trace again. Returns what is broken, and after which action. */
export async function replay<State>(
  model: Model<State>,
  actions: readonly string[],
  print: (text: string) => void,
): Promise<Problems> {
  const state = model.initial();
  for (const action of actions) {
    if (!model.actions(state).includes(action)) return [`"${action}" cannot happen here`];
    const problems = [...(await model.apply(state, action))];
    print(action);
    if (problems.length === 0) problems.push(...(await model.progress(copyOf(state))));
    if (problems.length > 0) return problems;
  }
  return [];
}

/** Copies plain data: structuredClone would take ten times as long. */
export function copyOf<Data>(data: Data): Data {
  if (Array.isArray(data)) return data.map((each: unknown) => copyOf(each)) as Data;
  if (typeof data !== 'object' || data === null) return data;
  const copy: Record<string, unknown> = {};
  for (const key in data) copy[key] = copyOf(data[key]);
  return copy as Data;
}

/** Two keys have the same digest once in 10^30 pairs, so it is as good as the text and takes less memory. */
function digestOf(key: string): string {
  return hash('md5', key, 'base64');
}
