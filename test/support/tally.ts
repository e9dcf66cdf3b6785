/** How often a check looked at one promise, and how often the promise was broken: a line of the table. */
export interface Row {
  readonly promise: string;
  readonly looked: number;
  /** Not as in quiet times, but explained by a fault that the check injected just then. */
  readonly explained: number;
  readonly broken: number;
  /** The first broken ones, a sentence each. */
  readonly problems: readonly string[];
  /** Figures, in words. */
  readonly measured: string;
  /** The same for programs: only `--json` writes them. */
  readonly figures?: object;
}

/** A row of a check that has one promise: each problem is one break of it. */
export function rowOf(row: Pick<Row, 'promise' | 'looked' | 'problems' | 'measured'> & Partial<Row>): Row {
  return { explained: 0, broken: row.problems.length, ...row };
}

/** A row that grows. */
export class Tally implements Row {
  looked = 0;
  explained = 0;
  broken = 0;
  measured = '';
  readonly problems: string[] = [];
  readonly promise: string;

  constructor(promise: string) {
    this.promise = promise;
  }

  /** @param problem what is wrong, where something is; `explained` where a fault explains it. */
  look(problem?: string, explained = false): void {
    this.looked += 1;
    if (problem === undefined) return;
    if (explained) this.explained += 1;
    else this.break(problem);
  }

  private break(problem: string): void {
    this.broken += 1;
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem);
  }
}

const MAX_PROBLEMS = 10;
