import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { parseArgs } from 'node:util';
import { closestMatch } from 'leven';
import { z } from 'zod';
import type { CheckOptions, SettingTable, ValueKind } from '../settings/check-settings.ts';
import { shownValue } from '../settings/setting-shapes.ts';
import { bothNames, flagSettings } from './flags.ts';
import type { FlagSetting } from './flags.ts';

/** Options as the user gave them, before their check. */
interface GivenOptions extends Required<Pick<CheckOptions, 'givenOf' | 'nameOf'>> {
  readonly options: Readonly<Record<string, unknown>>;
}

/** The text of a setting, and where it comes from. */
interface GivenText {
  readonly source: string;
  readonly text: string;
}

/** Turns the text of a setting into an option, by the kind of its value. Other kinds stay text, and so do wrong values. */
const FROM_TEXT: Readonly<Partial<Record<ValueKind, (given: GivenText) => unknown>>> = {
  BOOLEAN: booleanOf,
  HOSTS: listOf,
  MANIFEST: manifestOf,
  MS: numberOf,
  N: numberOf,
  ORIGINS: listOf,
  PERCENT: numberOf,
};

/**
 * Reads options from flags and the environment: a flag wins over its variable. An empty variable is none, unless it is a secret's: without
 * it petql would serve anybody, or count alone. A variable that ends in `_FILE` names the file of a secret.
 *
 * @throws Error that names the flags that do not exist, or all variables and files that cannot be read.
 */
export function readOptions(table: SettingTable, args: readonly string[], env: NodeJS.ProcessEnv): GivenOptions {
  const settings = flagSettings(table);
  const flags = readFlags(settings, args);
  const options: Record<string, unknown> = {};
  const texts = new Map<string, GivenText>();
  const problems: string[] = [];

  for (const setting of settings) {
    const { name, flagName, value = 'BOOLEAN' } = setting;
    try {
      const flag = flags[flagName];
      const given = flag === undefined ? readVariable(setting, env) : { source: `--${flagName}`, text: flag };
      if (!given) continue;

      texts.set(name, given);
      options[name] = FROM_TEXT[value]?.(given) ?? given.text;
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  if (problems.length > 0) throw new Error(problems.join('; '));
  return {
    options,
    // Such as `--port`, `PORT` and `KEY_SECRET_FILE`; both names where it was not given.
    nameOf: (setting) => texts.get(setting)?.source ?? bothNames(setting),
    givenOf: (setting) => texts.get(setting)?.text,
  };
}

/** Returns the text of each flag that is given. */
function readFlags(settings: readonly FlagSetting[], args: readonly string[]): Readonly<Record<string, string>> {
  const options = settings.map(({ flagName, value }) => [flagName, { type: value ? 'string' : 'boolean' }] as const);
  try {
    const { values } = parseArgs({ args: [...args], options: Object.fromEntries(options) });
    const empty = Object.keys(values).find((flag) => values[flag] === '');
    if (empty) throw new Error(`--${empty} needs a value`);
    return Object.fromEntries(Object.entries(values).map(([flag, value]) => [flag, String(value)]));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // Node's message repeats the argument, which may be a part of a secret.
    const isArgument = code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL';
    const problem = isArgument ? 'Unexpected argument: each option starts with --' : message.replace(/\.?\n.*/s, '');
    const [, unknown] = /^Unknown option '--([\w-]+)'/.exec(message) ?? [];
    const flagNames = settings.map(({ flagName }) => flagName);
    const meant = unknown && closestMatch(unknown, flagNames, { maxDistance: 2 });
    const hint = meant ? `did you mean --${meant}? petql --help` : 'petql --help';
    throw new Error(`${problem}; ${hint} lists the options`, { cause: error });
  }
}

function readVariable({ variable, isSecret, value }: FlagSetting, env: NodeJS.ProcessEnv): GivenText | undefined {
  const text = env[variable];
  const file = isSecret ? env[`${variable}_FILE`] : undefined;
  if (file) {
    if (text) throw new Error(`${variable} and ${variable}_FILE cannot both be set`);
    return readSecret(`${variable}_FILE`, file);
  }
  if (isSecret && text === '') throw new Error(`${variable} is empty: give it a value, or unset it`);
  if (!text) return undefined;

  if (value === 'N' && text.startsWith('tcp://')) {
    const service = variable.replace(/_PORT$/, '').toLowerCase();
    throw new Error(
      `${variable} is what Kubernetes sets for a Service named ${service}: give the pod enableServiceLinks: false`,
    );
  }
  // conda and tcsh set it to the name of a platform or of the machine, where the network would reach petql.
  if (variable === 'HOST' && isIP(text) === 0 && text !== 'localhost') {
    const problem = `HOST must be an IP address (:: for all addresses) or localhost, got ${shownValue(text)}`;
    throw new Error(`${problem}; shells set it to other ends, and --host wins over it`);
  }
  return { source: variable, text };
}

function readSecret(source: string, file: string): GivenText {
  // Editors and echo end a file with a line break.
  const text = textOf(file, `${source} cannot be read`).trimEnd();
  if (text === '') throw new Error(`${source} names an empty file`);
  return { source, text };
}

function textOf(file: string, problem: string): string {
  const bytes = bytesOf(file, problem);
  if (!isUtf8(bytes)) throw new Error(`${problem}: expected a text in UTF-8`);
  // Programs on Windows begin a text with a byte order mark.
  return bytes.toString().replace(/^\uFEFF/, '');
}

function bytesOf(file: string, problem: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Error(`${problem}: ${(error as Error).message}`, { cause: error });
  }
}

function manifestOf({ source, text: file }: GivenText): unknown {
  const problem = `${source}: cannot read ${file}`;
  const text = textOf(file, problem);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${problem}: ${(error as Error).message}`, { cause: error });
  }
}

function booleanOf({ text }: GivenText): unknown {
  return z.stringbool().safeParse(text).data;
}

function listOf({ text }: GivenText): string[] {
  return text.split(',').flatMap((item) => item.trim() || []);
}

function numberOf({ text }: GivenText): unknown {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
