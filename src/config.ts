import { parseArgs } from 'node:util';
import { z } from 'zod';
import { DURATIONS } from './durations.ts';
import { LIMITS } from './limits.ts';
import type { Limits } from './limits.ts';
import { parsePlan } from './plan.ts';
import type { AssumedPlan } from './plan.ts';
import { shownValue } from './shown-value.ts';

/** What `petql` runs: the gateway, or the pet service's sandbox alone. */
export type Command = 'gateway' | 'sandbox';

const EXPECTED_URL = 'expected an http or https address without user, query and fragment';
const EXPECTED_KEY = 'expected 1 to 512 visible ASCII characters';
export const EXPECTED_PLAN = 'expected auto, free, pro, business, or PER_MINUTE/PER_DAY such as 500/20000';
const EXPECTED_REDIS =
  'expected an address such as redis://localhost:6379, or redis://localhost:6379/1 for its database 1';
const EXPECTED_FILE = 'expected the path of a file';
const EXPECTED_SECRET = 'expected at least 16 characters';
const EXPECTED_ORIGINS = 'expected origins such as https://pets.example, or * for any';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'silent'] as const;

/** The shapes of settings that `createGateway` takes as options too. */
export const SHAPES = {
  petApiUrl: z.string(EXPECTED_URL).transform(baseUrl),
  petApiKey: z.string(EXPECTED_KEY).regex(/^[\x21-\x7e]{1,512}$/, EXPECTED_KEY),
  plan: z.string(EXPECTED_PLAN).transform(plan),
  redisUrl: z.string(EXPECTED_REDIS).transform(redisUrl),
  // SQLite takes no name for a file that is gone when it is closed.
  stateFile: z.string(EXPECTED_FILE).min(1, EXPECTED_FILE),
  keySecret: z.string(EXPECTED_SECRET).min(16, EXPECTED_SECRET),
  corsOrigins: z.array(z.string().refine(isOrigin, EXPECTED_ORIGINS), EXPECTED_ORIGINS),
} as const;

const SETTINGS = {
  petApiUrl: setting(['gateway'], {
    placeholder: 'URL',
    help: 'base address of the pet adoption service, with its /v1; none: the embedded sandbox',
    shape: SHAPES.petApiUrl.optional(),
  }),
  sandbox: setting(['gateway'], {
    help: 'run over the embedded sandbox, in production too',
    shape: z.stringbool('expected true or false').default(false),
  }),
  petApiKey: setting(['gateway'], {
    placeholder: 'KEY',
    help: 'API key for every request, instead of the one that each caller brings',
    secret: true,
    shape: SHAPES.petApiKey.optional(),
  }),
  plan: setting(['gateway'], {
    placeholder: 'PLAN',
    help: 'auto (default), free, pro, business or PER_MINUTE/PER_DAY; corrected by what the service tells',
    shape: SHAPES.plan.prefault('auto'),
  }),
  maxWaitMs: setting(['gateway'], {
    placeholder: 'MS',
    help: 'how long a request may wait for the plan',
    shape: duration('maxWaitMs'),
  }),
  maxAgeMs: setting(['gateway'], {
    placeholder: 'MS',
    help: 'how old an answer may be to be served as it is',
    shape: duration('maxAgeMs'),
  }),
  maxStaleMs: setting(['gateway'], {
    placeholder: 'MS',
    help: 'how old an answer may be to be better than none, while the plan is spared or used up',
    shape: duration('maxStaleMs'),
  }),
  heedCacheControl: setting(['gateway'], {
    help: 'let visitors ask for fresher answers with Cache-Control where the key is --pet-api-key',
    shape: z.stringbool('expected true or false').default(false),
  }),
  redisUrl: setting(['gateway'], {
    placeholder: 'URL',
    help: 'Redis that replicas share what they spent in, such as redis://localhost:6379',
    secret: true,
    shape: SHAPES.redisUrl.optional(),
  }),
  stateFile: setting(['gateway'], {
    placeholder: 'FILE',
    help: 'where one process without Redis keeps what it spent; none: a restart forgets',
    shape: SHAPES.stateFile.optional(),
  }),
  keySecret: setting(['gateway'], {
    placeholder: 'SECRET',
    help: 'hashes API keys wherever they are kept; none: made once, and kept with them',
    secret: true,
    shape: SHAPES.keySecret.optional(),
  }),
  port: setting(['gateway', 'sandbox'], {
    placeholder: 'N',
    help: 'port to listen on; 0 takes a free one',
    shape: wholeNumber(0, 65_535).default(4000),
  }),
  host: setting(['gateway', 'sandbox'], {
    placeholder: 'ADDRESS',
    help: 'address to listen on',
    shape: z.string().default('127.0.0.1'),
  }),
  adminPort: setting(['gateway'], {
    placeholder: 'N',
    help: 'port of the metrics and the budget page; none: they are off',
    shape: wholeNumber(0, 65_535).optional(),
  }),
  adminHost: setting(['gateway'], {
    placeholder: 'ADDRESS',
    help: 'address to listen on for them',
    shape: z.string().default('127.0.0.1'),
  }),
  graphiql: setting(['gateway'], {
    placeholder: 'BOOLEAN',
    help: 'whether browsers get GraphiQL',
    shape: z.stringbool('expected true or false').default(true),
  }),
  introspection: setting(['gateway'], {
    placeholder: 'BOOLEAN',
    help: 'whether the schema can be asked for',
    shape: z.stringbool('expected true or false').default(true),
  }),
  trustedDocuments: setting(['gateway'], {
    placeholder: 'FILE',
    help: 'manifest of the documents that clients may ask for by their ids: JSON of GraphQL Code Generator, Relay or Apollo',
    shape: z.string().optional(),
  }),
  requireTrustedDocuments: setting(['gateway'], {
    help: 'run no other documents than those',
    shape: z.stringbool('expected true or false').default(false),
  }),
  corsOrigins: setting(['gateway'], {
    placeholder: 'ORIGINS',
    help: 'origins whose pages may ask, with commas between them, or * for any; none: pages of this origin alone',
    shape: z
      .string()
      .default('')
      .transform((text) => text.split(',').flatMap((origin) => origin.trim() || []))
      .pipe(SHAPES.corsOrigins),
  }),
  ...limitSettings(),
  upstreamTimeoutMs: setting(['gateway'], {
    placeholder: 'MS',
    help: 'how long one call to the upstream may take',
    shape: duration('upstreamTimeoutMs'),
  }),
  sandboxFile: setting(['gateway', 'sandbox'], {
    placeholder: 'FILE',
    help: "where the sandbox's animals are kept; none: in memory",
    shape: z.string().optional(),
  }),
  logLevel: setting(['gateway', 'sandbox'], {
    placeholder: 'LEVEL',
    help: LOG_LEVELS.join(', '),
    shape: z.enum(LOG_LEVELS, `expected one of ${LOG_LEVELS.join(', ')}`).default('info'),
  }),
} satisfies Record<string, Setting>;

export type Config = { readonly [Name in keyof typeof SETTINGS]: z.output<(typeof SETTINGS)[Name]['shape']> };

/** Every setting that was wrong, each in words of its own. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}

/**
 * Reads the settings of a command: a flag wins over the environment, the environment over the default; an empty
 * environment variable counts as none.
 *
 * @throws ConfigError that names every wrong flag and setting at once.
 */
export function readConfig(command: Command, args: readonly string[], env: NodeJS.ProcessEnv): Config {
  const problems: string[] = [];
  const flags = readFlags(command, args, problems);
  const config: Record<string, unknown> = {};
  for (const [name, { commands, shape, secret }] of Object.entries<Setting>(SETTINGS)) {
    const flag = flags.get(name);
    // What is set for the other command is none of this one's business.
    const given = commands.includes(command) ? (flag ?? (env[environmentName(name)] || undefined)) : undefined;
    const parsed = shape.safeParse(given);
    if (parsed.success) {
      config[name] = parsed.data;
    } else {
      const source = flag === undefined ? environmentName(name) : `--${flagName(name)}`;
      const came = secret ? '' : `, got ${shownValue(given)}`;
      problems.push(`${source}: ${parsed.error.issues[0]?.message}${came}`);
    }
  }
  if (command === 'gateway') problems.push(...conflicts(config, env));
  if (problems.length > 0) throw new ConfigError(problems);
  return config as Config;
}

/** The settings of a command, a line each, for `--help`. */
export function describeConfig(command: Command): string {
  const rows = Object.entries<Setting>(SETTINGS)
    .filter(([, { commands }]) => commands.includes(command))
    .map(([name, { placeholder, help, shape }]) => {
      const fallback = shape.safeParse(undefined).data;
      return [
        `  --${flagName(name)}${placeholder ? ` ${placeholder}` : ''}`,
        environmentName(name),
        help + (isPlain(fallback) && (placeholder || fallback) ? ` (default ${fallback})` : ''),
      ];
    });
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')).join('\n');
}

function isPlain(value: unknown): value is boolean | number | string {
  return ['boolean', 'number', 'string'].includes(typeof value);
}

interface Setting<Shape extends z.ZodType = z.ZodType> {
  readonly commands: readonly Command[];
  /** What stands for the value in `--help`; a flag without one takes no value. */
  readonly placeholder?: string;
  readonly help: string;
  /** Whether its value must never be repeated. */
  readonly secret?: boolean;
  readonly shape: Shape;
}

function setting<Shape extends z.ZodType>(
  commands: readonly Command[],
  rest: Omit<Setting<Shape>, 'commands'>,
): Setting<Shape> {
  return { commands, ...rest };
}

function duration(name: keyof typeof DURATIONS) {
  const { lowest, highest, fallback } = DURATIONS[name];
  return wholeNumber(lowest, highest).default(fallback);
}

function wholeNumber(lowest: number, highest: number) {
  const expected = `expected a whole number from ${lowest} to ${highest}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, expected)
    .transform(Number)
    .refine((value) => value >= lowest && value <= highest, expected);
}

function limitSettings() {
  const settings = Object.entries(LIMITS).map(([name, { lowest, highest, fallback, help }]) => {
    const shape = wholeNumber(lowest, highest).default(fallback);
    return [name, setting(['gateway'], { placeholder: 'N', help: `at most so many ${help}`, shape })];
  });
  return Object.fromEntries(settings) as Record<keyof Limits, Setting<z.ZodType<number>>>;
}

function isOrigin(text: string): boolean {
  return text === '*' || (/^https?:/.test(text) && URL.parse(text)?.origin === text);
}

function baseUrl(text: string, context: z.RefinementCtx): URL {
  const url = URL.parse(text);
  if (url && /^https?:$/.test(url.protocol) && !(url.username || url.password || url.search || url.hash)) return url;
  context.addIssue(EXPECTED_URL);
  return z.NEVER;
}

/** It may hold a password, so it stays a string that is never shown. */
function redisUrl(text: string, context: z.RefinementCtx): string {
  const url = URL.parse(text);
  const isRedis = url && /^rediss?:$/.test(url.protocol) && namesDatabase(url);
  if (isRedis && isDecodable(url.username + url.password)) return text;
  context.addIssue(isRedis ? 'expected % as %25 in its password' : EXPECTED_REDIS);
  return z.NEVER;
}

/** By its number, or not at all: any other name ioredis takes for database 0, which may be another deployment's. */
function namesDatabase({ pathname, searchParams }: URL): boolean {
  return /^\/?\d*$/.test(pathname) && /^\d*$/.test(searchParams.get('db') ?? '');
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function plan(text: string, context: z.RefinementCtx): AssumedPlan {
  const parsed = parsePlan(text);
  if (parsed) return parsed;
  context.addIssue(EXPECTED_PLAN);
  return z.NEVER;
}

function conflicts(config: Partial<Config>, env: NodeJS.ProcessEnv): string[] {
  const { petApiUrl, sandbox, requireTrustedDocuments, trustedDocuments } = config;
  if (requireTrustedDocuments && !trustedDocuments) {
    return [
      '--require-trusted-documents: expected --trusted-documents (TRUSTED_DOCUMENTS) beside it, or nothing could run',
    ];
  }
  if (petApiUrl && sandbox) {
    return ['--sandbox: expected no --pet-api-url (PET_API_URL) beside it, since one of them is the upstream'];
  }
  if (!petApiUrl && !sandbox && !env['PET_API_URL'] && env['NODE_ENV'] === 'production') {
    return ['--pet-api-url (PET_API_URL): expected under NODE_ENV=production; --sandbox runs the sandbox all the same'];
  }
  return [];
}

function readFlags(command: Command, args: readonly string[], problems: string[]): Map<string, string> {
  const known = Object.entries<Setting>(SETTINGS).filter(([, { commands }]) => commands.includes(command));
  const byFlag = new Map(known.map(([name, { placeholder }]) => [flagName(name), { name, placeholder }]));
  const flags = new Map<string, string>();
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      [...byFlag].map(([flag, { placeholder }]) => [flag, { type: placeholder ? 'string' : 'boolean' }] as const),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  // What stands behind a flag may be its value, and a secret: only words that cannot be are repeated.
  let after: string | undefined;
  for (const token of tokens) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      const came = after === undefined ? JSON.stringify(token.value) : `the word after ${after}`;
      problems.push(`${came}: expected a flag; petql --help lists them`);
      continue;
    }
    const flag = byFlag.get(token.name);
    if (flag && !(flag.placeholder && !token.value)) flags.set(flag.name, token.value ?? 'true');
    else if (flag) problems.push(`--${token.name}: expected a value, as in --${token.name} ${flag.placeholder}`);
    else if (token.rawName.startsWith('--')) problems.push(`${token.rawName}: no such flag; petql --help lists them`);
    else if (!problems.includes(ONE_DASH)) problems.push(ONE_DASH);
    after = token.rawName.startsWith('--') ? token.rawName : 'a flag with one dash';
  }
  return flags;
}

const ONE_DASH = 'a flag with one dash: there is none but -h; petql --help lists the others';

/** petApiUrl is --pet-api-url on the command line … */
function flagName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** … and PET_API_URL in the environment. */
function environmentName(name: string): string {
  return flagName(name).replaceAll('-', '_').toUpperCase();
}
