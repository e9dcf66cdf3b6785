import type { Row } from '../support/tally.ts';

/** One command of `npm run verify`: `npm run verify -- soak` runs the suite `soak`. */
export interface Suite {
  /** What the suite does, as a noun phrase for `--help`. */
  readonly about: string;
  readonly checks: readonly Check[];
  /** Length of each check in minutes without `--minutes`. Default: the length cannot be chosen. */
  readonly minutes?: number;
  /** The seed without `--seed`. Default: another one each time. */
  readonly seed?: number;
}

export interface Check {
  /** Without spaces. */
  readonly name: string;
  /** What has to hold, in words. */
  readonly goal: string;
  /** How many processes it starts. Such checks run beside each other. Default: the check needs the machine alone. */
  readonly processes?: number;
  /** Whether the check runs only where `--only` names it. Default false. */
  readonly onRequest?: boolean;
  readonly run: (options: CheckOptions) => Promise<readonly Row[]>;
}

export interface CheckOptions {
  readonly seed: number;
  readonly minutes: number;
  /** What a comparison runs beside petql. */
  readonly beside?: readonly string[] | undefined;
  readonly print: (text: string) => void;
}
