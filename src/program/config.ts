import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { FLAGS, SETTINGS, problemOf } from '../settings.ts';
import type { Command, Config } from '../settings.ts';

/** Reads a value from the text of a flag, by its kind. The schema rejects what is not readable. */
const FROM_TEXT: Readonly<Record<string, (text: string) => unknown>> = {
  N: numberOf,
  MS: numberOf,
  BOOLEAN: (text) => z.stringbool().safeParse(text).data ?? text,
  HOSTS: listOf,
  ORIGINS: listOf,
};

/**
 * Reads the settings of a command: a flag wins over the environment, the environment over the default. An empty variable is
 * none, and one that ends in `_FILE` names the file of a secret. The settings of the other command have their defaults.
 *
 * @throws Error that names every wrong setting.
 */
export function readConfig(command: Command, args: readonly string[], env: NodeJS.ProcessEnv): Config {
  const given = readFlags(command, args);
  const problems: string[] = [];
  const config: Record<string, unknown> = {};
  for (const setting of flagSettings()) {
    const { name, flag, value = 'BOOLEAN', commands = ['gateway'], schema } = setting;
    const isSet = commands.includes(command);
    const { from, text, problem } = given[flag] ? { from: `--${flag}`, text: given[flag] } : readVariable(setting, env);
    const { success, data, error } = schema.safeParse(isSet && text ? (FROM_TEXT[value]?.(text) ?? text) : undefined);
    if (success) config[name] = data;
    if (isSet && problem) problems.push(problem);
    else if (!success) problems.push(problemOf(from, error, text, setting));
  }
  const conflict = command === 'gateway' && conflictOf(config, env);
  if (conflict) problems.push(conflict);
  if (problems.length > 0) throw new Error(problems.join('; '));
  return config as unknown as Config;
}

/** The settings of a command, a line each, for `--help`. */
export function describeConfig(command: Command): string {
  const rows = flagSettings(command).map(({ flag, variable, value, help, schema }) => {
    const fallback = schema.safeParse(undefined).data;
    const isShown = ['boolean', 'number', 'string'].includes(typeof fallback) && (value || fallback);
    return [`  --${flag}${value ? ` ${value}` : ''}`, variable, help + (isShown ? ` (${String(fallback)})` : '')];
  });
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}

type FlagSetting = ReturnType<typeof flagSettings>[number];

/**
 * Returns settings with their names: as an option (petApiUrl), as a flag (pet-api-url), in the environment (PET_API_URL).
 *
 * @param command default: both.
 */
function flagSettings(command?: Command) {
  return Object.entries<z.ZodType>(SETTINGS).flatMap(([name, schema]) => {
    const more = FLAGS.get(schema);
    if (!more || (command && !(more.commands ?? ['gateway']).includes(command))) return [];
    const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return [{ schema, ...more, name, flag, variable: flag.replaceAll('-', '_').toUpperCase() }];
  });
}

/** The text of each flag that is given. */
function readFlags(command: Command, args: readonly string[]): Record<string, string> {
  const options = flagSettings(command).map(
    ({ flag, value }) => [flag, { type: value ? 'string' : 'boolean' }] as const,
  );
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
    throw new Error(`${problem}; petql --help lists the options`, { cause: error });
  }
}

/** Where a setting comes from in the environment, its text, and what is wrong with it before its kind is known. */
interface Given {
  readonly from: string;
  readonly text?: string | undefined;
  readonly problem?: string;
}

function readVariable({ variable, isSecret, value }: FlagSetting, env: NodeJS.ProcessEnv): Given {
  const text = env[variable] || undefined;
  const from = `${variable}_FILE`;
  const file = isSecret ? env[from] : undefined;
  if (file) return text ? { from, problem: `${variable} and ${from} cannot both be set` } : readSecret(from, file);
  if (value !== 'N' || !text?.startsWith('tcp://')) return { from: variable, text };
  const service = variable.replace(/_PORT$/, '').toLowerCase();
  const problem = `${variable} is what Kubernetes sets for a Service named ${service}: give the pod enableServiceLinks: false`;
  return { from: variable, problem };
}

function readSecret(from: string, file: string): Given {
  try {
    // Editors and echo end a file with a line break.
    const text = readFileSync(file, 'utf8').trimEnd();
    return text === '' ? { from, problem: `${from} names an empty file` } : { from, text };
  } catch (error) {
    return { from, problem: `${from} cannot be read: ${(error as Error).message}` };
  }
}

function conflictOf(config: Partial<Config>, env: NodeJS.ProcessEnv): string | undefined {
  const { petApiUrl, sandbox, requireTrustedDocuments, trustedDocuments } = config;
  if (requireTrustedDocuments && !trustedDocuments) {
    return '--require-trusted-documents needs --trusted-documents (TRUSTED_DOCUMENTS), or nothing could run';
  }
  if (petApiUrl && sandbox) return '--sandbox cannot be used with --pet-api-url (PET_API_URL)';
  if (petApiUrl || sandbox || env['PET_API_URL'] || env['NODE_ENV'] !== 'production') return undefined;
  return '--pet-api-url (PET_API_URL) is required when NODE_ENV=production, or pass --sandbox';
}

function listOf(text: string): string[] {
  return text.split(',').flatMap((item) => item.trim() || []);
}

function numberOf(text: string): unknown {
  return /^\d{1,15}$/.test(text) ? Number(text) : text;
}
