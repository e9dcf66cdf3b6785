/** What all clients share: types, when to send a query again, and what to tell people. */

export interface Operation {
  readonly query: string;
  readonly variables?: object;
}

export interface PetqlError {
  readonly message: string;
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
}

/** `extensions.petql` of a result. */
export interface PetqlUsage {
  readonly oldestAgeMs?: number;
  readonly staleReason?: string;
  readonly freshAt?: string;
}

export interface PetqlResult<Data> {
  readonly data?: Data | null | undefined;
  readonly errors?: readonly PetqlError[] | undefined;
  readonly extensions?: { readonly petql?: PetqlUsage } | undefined;
}

export const MAX_TRIES = 5;
/** Nobody looks at a page for longer. */
const MAX_WAIT_MS = 900_000;

/**
 * Returns after how many milliseconds to send a query again, or undefined. Do not ask for a create: what succeeded of it would happen
 * twice, and its sender may be gone. People send it again, with the same idempotency key.
 */
export function retryDelay(errors: readonly PetqlError[] = []): number | undefined {
  const limited = errors.filter((error) => codeOf(error) === 'RATE_LIMITED');
  const waitMs = Math.max(...limited.map(({ extensions }) => Number(extensions?.['retryAfterMs'])));
  return limited.length > 0 && waitMs <= MAX_WAIT_MS ? waitMs : undefined;
}

/** Returns what to tell people: what went wrong, else how old the data is and why; undefined where all is well. */
export function noticeOf({ errors = [], extensions }: PetqlResult<unknown>): string | undefined {
  const codes = Object.keys(ADVICE);
  const [worst] = errors.toSorted((one, other) => codes.indexOf(codeOf(one)) - codes.indexOf(codeOf(other)));
  if (worst) return (ADVICE[codeOf(worst)] ?? tryAgain)(worst);

  const { staleReason, oldestAgeMs = 0, freshAt } = extensions?.petql ?? {};
  if (staleReason === undefined) return undefined;
  const why = REASONS[staleReason] ?? staleReason;
  return `${ageOf(oldestAgeMs)} old: ${why}${freshAt === undefined ? '' : `; look again at ${timeOf(freshAt)}`}`;
}

/** The error of a create whose response is lost: with the same idempotency key it may be sent again. */
export const LOST: PetqlError = { message: 'There is no response.', extensions: { code: 'OUTCOME_PENDING' } };

/** Returns an idempotency key. `crypto.randomUUID` is missing on pages without https; React Native needs a polyfill of getRandomValues. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Resolves after a while, or rejects when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const leave = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', leave, { once: true });
  });
}

type Advice = (error: PetqlError) => string;

const comeBack: Advice = (error) => `Please come back ${againAt(error)}.`;
const tryAgain: Advice = (error) => `That did not work. Please try again ${againAt(error)}.`;
const correct: Advice = ({ message }) => `Please correct this: ${message}`;
const tellUs: Advice = ({ message }) => `This page has an error. Please reload it, or tell us: ${message}`;

const REASONS: Readonly<Record<string, string>> = {
  SAVING_QUOTA: 'calls are saved for later',
  QUOTA_EXHAUSTED: 'the calls of now are used up',
  CALLS_IN_FLIGHT: 'many calls are under way',
  PAUSED: 'the pet API asked for a pause',
  UPSTREAM_FAILED: 'the pet API fails',
  ONLY_IF_CACHED: 'no call was allowed',
};

/** By code, the worst first. */
const ADVICE: Readonly<Record<string, Advice>> = {
  OUTCOME_UNKNOWN: () => 'It may have worked. Please look before you try again.',
  OUTCOME_PENDING: (error) => `It may have worked. Please submit the same again ${againAt(error)}: it happens once.`,
  IDEMPOTENCY_UNAVAILABLE: (error) => `Nothing was sent. Please submit the same again ${againAt(error)}.`,
  BAD_USER_INPUT: correct,
  UNAUTHENTICATED: (error) => (mayReturn(error) ? comeBack(error) : 'The API key is not valid. Please check it.'),
  FORBIDDEN: (error) => (mayReturn(error) ? comeBack(error) : 'This API key has no right to do that.'),
  RATE_LIMITED: comeBack,
  DOWNSTREAM_SERVICE_ERROR: (error) => (isRejection(error) ? correct(error) : tryAgain(error)),
  GATEWAY_TIMEOUT: tryAgain,
  NOT_CACHED: () => 'Nothing is stored yet. Please load it anew.',
  INTERNAL_SERVER_ERROR: ({ extensions }) => `Something broke. Please tell us its id: ${String(extensions?.['id'])}`,
  LIMIT_EXCEEDED: tellUs,
  GRAPHQL_PARSE_FAILED: tellUs,
  GRAPHQL_VALIDATION_FAILED: tellUs,
  PERSISTED_DOCUMENT_NOT_FOUND: tellUs,
  PERSISTED_DOCUMENT_REQUIRED: tellUs,
};

function codeOf({ extensions }: PetqlError): string {
  return String(extensions?.['code']);
}

function mayReturn({ extensions }: PetqlError): boolean {
  return extensions?.['retryAt'] !== undefined;
}

/** Whether the pet API rejected the input, so that the same would fail again. */
function isRejection({ extensions }: PetqlError): boolean {
  const { status = 0 } = (extensions?.['upstream'] ?? {}) as { readonly status?: number };
  return [400, 409, 413, 422].includes(status);
}

function againAt({ extensions }: PetqlError): string {
  const retryAt = extensions?.['retryAt'];
  return typeof retryAt === 'string' ? `at ${timeOf(retryAt)}` : 'later';
}

function timeOf(date: string): string {
  return new Date(date).toLocaleString();
}

function ageOf(ms: number): string {
  if (ms < 60_000) return `${Math.ceil(ms / 1_000)} s`;
  return ms < 3_600_000 ? `${Math.ceil(ms / 60_000)} min` : `${Math.ceil(ms / 3_600_000)} h`;
}
