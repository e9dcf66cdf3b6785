/** How often one promise was looked at, and how often it was broken: a line of the table. */
export interface Tally {
  readonly check: string;
  readonly looked: number;
  readonly broken: number;
  /** Looked at and not as in quiet times, but explained by what was done to the parts just then. */
  readonly explained: number;
  /** The first ones that are broken, a sentence each. */
  readonly problems: readonly string[];
  /** What was measured, where the check is about a figure. */
  readonly measured: string;
}

export interface OpenTally extends Tally {
  ok(): void;
  explain(): void;
  break(problem: string): void;
  measure(text: string): void;
}

const MOST_PROBLEMS = 10;

export function createTally(check: string): OpenTally {
  let looked = 0;
  let broken = 0;
  let explained = 0;
  let measured = '';
  const problems: string[] = [];
  return {
    check,
    problems,
    get looked() {
      return looked;
    },
    get broken() {
      return broken;
    },
    get explained() {
      return explained;
    },
    get measured() {
      return measured;
    },
    ok() {
      looked += 1;
    },
    explain() {
      looked += 1;
      explained += 1;
    },
    break(problem) {
      looked += 1;
      broken += 1;
      if (problems.length < MOST_PROBLEMS) problems.push(problem);
    },
    measure(text) {
      measured = text;
    },
  };
}
