import { createGateway } from '../../src/index.ts';
import type { Gateway, GatewayOptions } from '../../src/index.ts';
import { seedPets } from '../../src/program/sandbox/seed.ts';
import { PLAN_KEYS } from '../../src/program/sandbox/demo-keys.ts';
import { listen } from '../../src/server/listener.ts';
import { post } from './client.ts';
import type { QueryAnswer, QueryOptions } from './client.ts';
import { createMemoryLog } from './memory-log.ts';
import type { LogLine } from './memory-log.ts';
import { createPetApi } from './pet-api/pet-api.ts';
import type { PetApi, PetApiOptions } from './pet-api/pet-api.ts';
import { createPetStore } from './pet-api/pet-store.ts';
import type { SeedPet } from './pet-api/pet-store.ts';
import type { StrictPlanOptions } from './pet-api/strict-plan.ts';

export type { QueryAnswer } from './client.ts';

export interface TestPetApiOptions extends Partial<PetApiOptions> {
  /** The pets of all keys. Default: the 250 of the sandbox, of which a list shows 100. */
  readonly pets?: readonly SeedPet[];
  /** The plan of each key, its windows fixed and in each response. Default: the sandbox's four demo keys. */
  readonly keys?: Readonly<Record<string, Pick<StrictPlanOptions, 'perDay' | 'perMinute'>>>;
}

/** Nothing listens there: calls go to the dispatcher. */
export const PET_API_URL = 'http://pet-api.test/v1';

const SHOWN = { windows: 'fixed', tells: 'changing' } as const;

/** A double of the pet API with the sandbox's pets and keys. */
export function createTestPetApi(options: TestPetApiOptions = {}): PetApi {
  const { pets = seedPets(), keys = PLAN_KEYS, now = awayFromTheHour(), ...rest } = options;
  const store = createPetStore({ pets, now });
  const plans = new Map(Object.entries(keys).map(([key, plan]) => [key, { ...plan, ...SHOWN }]));
  return createPetApi({
    storeOf: () => store,
    planOf: (key) => plans.get(key),
    now,
    ...rest,
  });
}

/** Returns a clock by which no minute of a test ends on the hour: under `auto`, such a minute may be the end of a day. */
function awayFromTheHour(): () => number {
  const aheadMs = new Date().getMinutes() < 30 ? 15 * 60_000 : -15 * 60_000;
  return () => Date.now() + aheadMs;
}

/** A gateway in this process, over a pet API in this process. */
export interface EmbeddedGateway extends Gateway, AsyncDisposable {
  readonly petApi: PetApi;
  readonly logLines: readonly LogLine[];
}

/** What stands between the gateway and the pet API, which then is on a socket. */
type Through = (petApiUrl: string) => Promise<{ readonly url: string }>;

/** Puts the pet API on a socket, with nothing in between. */
export const overHttp: Through = async (url) => ({ url });

export async function startEmbedded(
  options: Partial<GatewayOptions> = {},
  petApiOptions: TestPetApiOptions = {},
  through?: Through,
): Promise<EmbeddedGateway> {
  const petApi = createTestPetApi(petApiOptions);
  const server = through ? await petApi.listen() : undefined;
  const { log, lines } = createMemoryLog();
  const gateway = createGateway({ ...(await upstream()), log, ...options });
  return {
    ...gateway,
    petApi,
    logLines: lines,
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await server?.[Symbol.asyncDispose]();
    },
  };

  async function upstream(): Promise<Pick<GatewayOptions, 'dispatcher' | 'petApiUrl'>> {
    if (server && through) return { petApiUrl: (await through(server.url)).url };
    // Where a test gives an address of its own, connections go there.
    return { petApiUrl: PET_API_URL, ...(options.petApiUrl === undefined && { dispatcher: petApi.connect() }) };
  }
}

/** The same, with servers on free ports. */
export interface TestGateway extends Pick<EmbeddedGateway, 'logLines' | 'petApi'>, AsyncDisposable {
  readonly endpoint: string;
  /** Where metrics and quotas are, with the option `admin`. */
  readonly adminOrigin: string;
  readonly gateway: Gateway;
  /** Sends one operation with the Free demo key, or the headers given. */
  readonly query: (query: string, options?: QueryOptions) => Promise<QueryAnswer>;
}

export interface TestGatewayOptions {
  readonly petApi?: TestPetApiOptions;
  readonly gateway?: Partial<GatewayOptions>;
  /** Default: the pet API is in this process. */
  readonly through?: Through;
}

export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const gateway = await startEmbedded(options.gateway, options.petApi, options.through);
  const { petApi, logLines, admin } = gateway;
  const at = { host: '127.0.0.1', port: 0 };
  const listener = await listen(gateway.handle, at);
  const adminListener = admin && (await listen(admin, at));
  const endpoint = `${listener.origin}/graphql`;
  return {
    endpoint,
    adminOrigin: adminListener?.origin ?? '',
    gateway,
    petApi,
    logLines,
    query: (query, more) => post(endpoint, query, more),
    async [Symbol.asyncDispose]() {
      await listener.stop({ graceMs: 0 });
      await adminListener?.stop({ graceMs: 0 });
      await gateway[Symbol.asyncDispose]();
    },
  };
}

/** One operation over HTTP, as `fetch` takes it. */
export function graphqlRequest(
  params: object,
  headers: Readonly<Record<string, string>> = { authorization: 'Bearer demo-free' },
): Request {
  return new Request('http://localhost/graphql', {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(params),
  });
}
