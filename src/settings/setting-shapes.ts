import { isIP } from 'node:net';
import { inspect } from 'node:util';
import { z } from 'zod';
import { LOG_LEVELS } from '../common/log.ts';
import { parsePlan } from '../common/plan.ts';
import type { AssumedPlan } from '../common/plan.ts';
import type { PlanText, ServerKey } from './gateway-options.ts';
import { pageOrigin } from './page-origin.ts';
import { isDecodable, redisUrls } from '../store/redis-urls.ts';

/** The length of an API key. */
export const MAX_KEY_LENGTH = 512;

// Each follows the name of its setting.
const NO_URL = 'must be an http or https URL without user, query and fragment';
const NO_PROXY =
  'must be a URL such as http://proxy.example:3128 or http://user:password@proxy.example:3128, with % as %25 in its password';
const NO_KEY =
  `must be 1 to ${MAX_KEY_LENGTH} visible ASCII characters without quotes at its ends, ` +
  'and not what stands for one: undefined, null, <KEY>, $KEY or ${KEY}';
const NO_PLAN = 'must be auto, free, pro, business, or PER_MINUTE/PER_DAY such as 500/20000';
const NO_REDIS =
  'must be a URL such as redis://localhost:6379, redis://localhost:6379/1 for database 1, those of several nodes of a Cluster with ' +
  'commas between them, or redis+sentinel://host:26379,host2:26379/NAME, with % as %25 in its password, and with no parameters but ' +
  'keyPrefix and family';
const NO_ADDRESS =
  'must be an IP address or a name of this machine, without brackets and port, such as 127.0.0.1, or :: for all addresses';
const NO_FILE = 'must be the path of a file';
const NO_PLAIN_FILE = 'must be the path of a file without control characters';
const NO_SECRET =
  'must have at least 16 characters, without control characters and without quotes around them, ' +
  'and not what stands for one: <KEY>, $KEY or ${KEY}';
const NO_HEADER_NAME = 'must be the name of a header such as x-forwarded-for';
const NO_HOSTS = 'must be host names without a port, such as pets.example, or * for any';
const NO_ORIGINS = 'must be origins such as https://pets.example or capacitor://localhost, or * for any';

export const url = parsed<URL | string, URL>(NO_URL, baseUrl);
export const proxyUrl = parsed<URL | string, URL>(NO_PROXY, proxyOf);
export const key = z
  .string(NO_KEY)
  .refine((text) => isApiKey(text) && !isMistaken(text) && !hasHalfQuotes(text), NO_KEY);
export const serverKey = z.union(
  [z.custom<ServerKey>((given) => typeof given === 'function'), key],
  `${NO_KEY}, or a function that returns them`,
);
export const plan = parsed<PlanText, AssumedPlan>(NO_PLAN, (text) =>
  typeof text === 'string' ? parsePlan(text) : undefined,
);
export const redisUrl = parsed<string, string>(NO_REDIS, (text) => redisUrls(text) && text);
export const address = z.string(NO_ADDRESS).refine(isAddress, NO_ADDRESS);
export const file = z.string(NO_FILE).min(1, NO_FILE).refine(isPlain, NO_PLAIN_FILE);
export const secret = z
  .string(NO_SECRET)
  .min(16, NO_SECRET)
  .refine((text) => isPlain(text) && !isMistaken(text), NO_SECRET);
export const origins = z.array(parsed<string, string>(NO_ORIGINS, allowedOrigin), NO_ORIGINS).readonly();
export const hosts = z.array(z.string().regex(/^(?:\*|[\w-]+(?:\.[\w-]+)*)$/, NO_HOSTS), NO_HOSTS).readonly();
export const headerName = z
  .string(NO_HEADER_NAME)
  .regex(/^[\w.~!#$%&'*+^`|-]+$/, NO_HEADER_NAME)
  .toLowerCase();
export const logLevel = z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`);
export const manifest = z.custom<Readonly<Record<string, unknown>>>(
  (given) => typeof given === 'object' && given !== null && !Array.isArray(given),
  'must be an object of documents by their ids',
);
/** No pattern, since it is compared with the path of a request, which may have a slash at its end. */
export const path = parsed<string, string>('must be a path such as /api/graphql', pathWithoutSlash);

/** Whether a text can be an API key: pet-api.md shows no syntax, and a header takes visible ASCII. */
export function isApiKey(text: string): boolean {
  return text.length <= MAX_KEY_LENGTH && /^[\x21-\x7e]+$/.test(text);
}

/** Whether a secret is what a file of variables, a program or a person makes of one: `docker --env-file` keeps quotes and `$KEY`. */
function isMistaken(text: string): boolean {
  return /^(["']).*\1$|^(?:undefined|null|<.*>|\$\w+|\$\{.*\})$/s.test(text);
}

function hasHalfQuotes(text: string): boolean {
  return /^["'][^"']*$|^[^"']*["']$/.test(text);
}

/** Such as a carriage return, which files from Windows have at the end of each line. */
function isPlain(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- these are what it looks for
  return !/[\0-\x1f\x7f]/.test(text);
}

function isAddress(text: string): boolean {
  return isIP(text) !== 0 || /^[\w-]+(?:\.[\w-]+)*\.?$/.test(text);
}

export function boolean(fallback: boolean) {
  return z.boolean('must be true or false').default(fallback);
}

export function integer(min: number, max: number) {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.int(message).min(min, message).max(max, message);
}

/** An object with these functions, which is not copied. */
export function functions<T>(...names: (keyof T & string)[]) {
  return z.custom<T>(
    (given: unknown) => names.every((name) => typeof (given as Partial<T> | null | undefined)?.[name] === 'function'),
    `must be an object with the functions ${names.join(', ')}`,
  );
}

/** Returns a wrong value for its error, without the parts of a URL that may hold a password or a key. */
export function shownValue(given: unknown): string {
  const isText = typeof given === 'string' || given instanceof URL;
  const text = isText ? String(given) : inspect(given, { depth: 0 });
  const visible = text
    .replace(/^.*@/s, '…@')
    .replace(/[?#].*$/s, '?…')
    .slice(0, 80);
  return isText ? JSON.stringify(visible) : visible;
}

/** @param parse returns undefined for a wrong value, which may have any type. */
function parsed<Given, Value>(message: string, parse: (given: Given) => Value | undefined): z.ZodType<Value, Given> {
  return z.custom<Given>().transform((given, context) => {
    const value = parse(given);
    if (value !== undefined) return value;
    context.addIssue(message);
    return z.NEVER;
  });
}

function baseUrl(given: URL | string): URL | undefined {
  const base = URL.parse(given);
  const isBare = base && !(base.username || base.password || base.search || base.hash);
  return isBare && /^https?:$/.test(base.protocol) ? base : undefined;
}

function proxyOf(given: URL | string): URL | undefined {
  const proxy = URL.parse(given);
  if (!proxy || !/^https?:$/.test(proxy.protocol) || !isDecodable(proxy.username + proxy.password)) return undefined;
  return proxy.pathname + proxy.search + proxy.hash === '/' ? proxy : undefined;
}

function pathWithoutSlash(text: unknown): string | undefined {
  return typeof text === 'string' ? /^((?:\/[\w.~-]+)+)\/?$/.exec(text)?.[1] : undefined;
}

function allowedOrigin(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  return text === '*' ? text : pageOrigin(text);
}
