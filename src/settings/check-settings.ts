import type { z } from 'zod';
import { shownValue } from './setting-shapes.ts';

/** The kind of a flag's value, as `--help` shows it. The program reads the text of a flag by it. */
export type ValueKind =
  | 'ADDRESS'
  | 'BOOLEAN'
  | 'FILE'
  | 'HOSTS'
  | 'KEY'
  | 'LEVEL'
  | 'MANIFEST'
  | 'MS'
  | 'N'
  | 'NAME'
  | 'ORIGINS'
  | 'PERCENT'
  | 'PLAN'
  | 'SECRET'
  | 'URL';

/** How the program takes a setting: as a flag, or as the environment variable of the same name. */
export interface Flag {
  /** Default: the flag takes no value, and turns the setting on. */
  readonly value?: ValueKind;
  readonly help: string;
}

export interface Setting<Schema extends z.ZodType = z.ZodType> {
  /** Its type, bounds and default. */
  readonly schema: Schema;
  /** Whether messages must not repeat the value. Default false. */
  readonly isSecret?: boolean;
  /** Default: only the library has the setting. */
  readonly flag?: Flag;
}

/** Settings by their names. */
export type SettingTable = Readonly<Record<string, Setting>>;

export type Outputs<Table extends SettingTable> = { readonly [Name in keyof Table]: z.output<Table[Name]['schema']> };

export interface CheckOptions {
  /** Returns how the user gave a setting. Default: as an option. */
  readonly nameOf?: (setting: string) => string;
  /** Returns the value that the user gave. Default: the option. */
  readonly givenOf?: (setting: string) => unknown;
  /** Begins the message. Default: nothing. */
  readonly prefix?: string;
}

/**
 * Checks settings, and adds the defaults of those that are undefined.
 *
 * @throws TypeError that names every wrong setting, and never repeats a secret.
 */
export function checkSettings<Table extends SettingTable>(
  table: Table,
  given: Readonly<Record<string, unknown>>,
  { nameOf = (setting) => setting, givenOf = (setting) => given[setting], prefix = '' }: CheckOptions = {},
): Outputs<Table> {
  const unknown = Object.keys(given).filter((name) => !Object.hasOwn(table, name));
  const problems = unknown.map((name) => `${name} is not an option`);

  const checked: Record<string, unknown> = {};
  for (const [name, { schema, isSecret }] of Object.entries(table)) {
    const { success, data, error } = schema.safeParse(given[name]);
    if (success) {
      checked[name] = data;
    } else {
      const got = isSecret ? '' : `, got ${shownValue(givenOf(name))}`;
      problems.push(`${nameOf(name)} ${error.issues[0]?.message}${got}`);
    }
  }

  // Settings can only contradict each other where each one is right.
  if (problems.length === 0 && checked['requireTrustedDocuments'] && !checked['trustedDocuments']) {
    problems.push(`${nameOf('requireTrustedDocuments')} needs ${nameOf('trustedDocuments')}, or nothing could run`);
  }
  if (problems.length > 0) throw new TypeError(prefix + problems.join('; '));
  return checked as Outputs<Table>;
}
