import type { Flag, Setting, SettingTable } from '../settings/check-settings.ts';

/** A setting that the program takes, with its names. */
export interface FlagSetting extends Setting, Flag {
  /** The name as an option, such as petApiUrl. */
  readonly name: string;
  /** The name as a flag, without its dashes, such as pet-api-url. */
  readonly flagName: string;
  /** The name in the environment, such as PET_API_URL. */
  readonly variable: string;
}

/** Returns the settings of a table that the program takes. */
export function flagSettings(table: SettingTable): readonly FlagSetting[] {
  return Object.entries(table).flatMap(([name, setting]) =>
    setting.flag ? [{ ...setting, ...setting.flag, name, flagName: flagNameOf(name), variable: variableOf(name) }] : [],
  );
}

/** Returns both ways to give a setting: `--pet-api-url (PET_API_URL)`. */
export function bothNames(setting: string): string {
  return `--${flagNameOf(setting)} (${variableOf(setting)})`;
}

function flagNameOf(setting: string): string {
  return setting.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function variableOf(setting: string): string {
  return flagNameOf(setting).replaceAll('-', '_').toUpperCase();
}
