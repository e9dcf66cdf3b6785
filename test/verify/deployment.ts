import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { askDayUsed } from '../support/client.ts';
import { createFaults } from '../support/faults.ts';
import type { Faults } from '../support/faults.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';
import { startFleet } from '../support/fleet.ts';
import type { Fleet, FleetOptions } from '../support/fleet.ts';
import { createPetApi } from '../support/pet-api/pet-api.ts';
import type { PetApi, PetApiOptions } from '../support/pet-api/pet-api.ts';
import { startRedis } from '../support/redis-server.ts';
import type { RedisServer } from '../support/redis-server.ts';

/** Replicas of petql over a strict pet API, and all that can be harmed. */
export interface Deployment {
  readonly petApi: PetApi;
  readonly fleet: Fleet;
  readonly faults: Faults;
  /** Between petql and the pet API. */
  readonly upstreamProxy: FaultProxy;
  readonly redis: Redis | undefined;
}

export interface Redis {
  readonly server: RedisServer;
  /** Between petql and Redis. */
  readonly proxy: FaultProxy;
}

export interface DeploymentOptions
  extends
    Pick<PetApiOptions, 'aheadMs' | 'latencyMs' | 'planOf' | 'storeOf'>,
    Pick<FleetOptions, 'args' | 'clockJumpsMs' | 'clocksAheadMs' | 'nodeOptions' | 'onStart'> {
  readonly replicas: number;
  /** Where petql keeps its accounts. Default: in Redis for several replicas, in memory for one. */
  readonly store?: 'memory' | 'redis' | 'state-file';
  /** Whether Redis keeps its data over a restart. Default false. */
  readonly durable?: boolean;
}

/** Starts all of it; `resources` close it. */
export async function deploy(resources: AsyncDisposableStack, options: DeploymentOptions): Promise<Deployment> {
  const { replicas: count, store = count > 1 ? 'redis' : 'memory', durable = false, args = [], ...more } = options;
  const faults = createFaults();
  const petApi = createPetApi(more);
  const upstream = resources.use(await petApi.listen());
  const upstreamProxy = resources.use(await startFaultProxy({ target: upstream.url }));
  const redis = store === 'redis' ? await openRedis(resources, durable) : undefined;
  const stateFile = store === 'state-file' ? ['--state-file', await newStateFile(resources)] : [];
  const urls = { upstreamUrl: upstreamProxy.url, redisUrl: redis?.proxy.url };
  const fleet = resources.use(await startFleet({ ...more, ...urls, count, faults, args: [...args, ...stateFile] }));
  // With their code loaded and their Redis found, as replicas behind a load balancer.
  await Promise.all(fleet.endpoints.map((endpoint) => askDayUsed(endpoint(), 'nobody')));
  if (redis) await fleet.knowEachOther();
  return { petApi, fleet, faults, upstreamProxy, redis };
}

async function openRedis(resources: AsyncDisposableStack, durable: boolean): Promise<Redis> {
  const server = await startRedis({ durable });
  resources.defer(() => server.close());
  return { server, proxy: resources.use(await startFaultProxy({ target: server.url })) };
}

async function newStateFile(resources: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'petql-verify-'));
  resources.defer(() => rm(folder, { recursive: true, force: true }));
  return join(folder, 'state.db');
}
