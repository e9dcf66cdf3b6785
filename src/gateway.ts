import { setTimeout } from 'node:timers/promises';
import { createAdmin } from './admin/admin.ts';
import { Metrics } from './admin/metrics.ts';
import { Callers } from './caller/callers.ts';
import { ConsumerRows } from './caller/consumers.ts';
import { DispatchedCall } from './settings/dispatched-call.ts';
import type { Gateway } from './server/gateway-api.ts';
import { withLevel } from './common/log.ts';
import { checkHeap } from './common/memory.ts';
import { openStores } from './caller/open-stores.ts';
import { GET } from './closed/closed-for-key.ts';
import { GetRoute } from './pets/get-route.ts';
import { SnapshotMemory } from './reads/cache/snapshot-memory.ts';
import { schema } from './schema/schema.ts';
import { createExecute } from './server/execute.ts';
import type { HttpCounts } from './server/http-counts.ts';
import { createGraphqlServer } from './server/graphql-server.ts';
import { createFetchHandler } from './server/http/fetch-handler.ts';
import { createFetch } from './server/http/fetch.ts';
import type { Health } from './server/http/health.ts';
import { createNodeHandler } from './server/http/node-handler.ts';
import { RequestBodies } from './server/http/request-body.ts';
import { readTrustedDocuments } from './server/plugins/trusted-documents.ts';
import type { TrustedDocuments } from './server/plugins/trusted-documents.ts';
import { checkedOptions } from './settings/settings.ts';
import type { CheckedOptions } from './settings/settings.ts';
import { ClosedApi } from './closed/closed-api.ts';
import { ClosedOperations } from './closed/closed-operations.ts';
import { RejectedKeys } from './closed/rejected-keys.ts';
import { ServerKeyState } from './closed/server-key-state.ts';
import { createSpans } from './common/tracing.ts';
import type { Spans } from './common/tracing.ts';
import { createTransport } from './upstream/http-transport.ts';
import { PetApi } from './pets/pet-api.ts';
import { CLOSE_AFTER_MS, STORING_QUOTA_MS } from './common/times.ts';
import { OUTCOME_LEASE_MS } from './common/call-times.ts';

/**
 * Creates a gateway with options that were checked.
 *
 * @param http what its listener counts, for the metrics; undefined where others listen.
 * @throws SettingError when the trusted documents or the state file cannot be used. Nothing stays open.
 */
export function openGateway(options: CheckedOptions, http?: HttpCounts): Gateway {
  const checked = { ...options, log: withLevel(options.log, options.logLevel) };
  checkHeap(checked.log);
  const trusted = readTrustedDocuments(checked);
  const opened = new DisposableStack();
  try {
    return assemble(checked, { trusted, opened, spans: createSpans(), http });
  } catch (error) {
    // Closed at once: the program may try again, and a file is for one process.
    opened.dispose();
    throw error;
  }
}

interface AssemblyParts {
  readonly trusted?: TrustedDocuments | undefined;
  /** Gets functions that close at once what is open. */
  readonly opened: DisposableStack;
  readonly spans: Spans;
  readonly http?: HttpCounts | undefined;
}

function assemble(checked: CheckedOptions, { trusted, opened, spans, http }: AssemblyParts): Gateway {
  const { petApiUrl, petApiKey, upstreamTimeoutMs, maxStaleMs, proxy, log, clock, dispatcher, admin, planShare } =
    checked;
  let isDraining = false;
  let closing: Promise<void> | undefined;

  const metrics = admin ? new Metrics(clock, planShare) : undefined;
  const events = metrics?.events;
  const stores = openStores(checked, opened, events);
  const { accounts, replicas, sharedLists, records, nameOf } = stores;
  const transport = createTransport({ origin: petApiUrl.origin, timeoutMs: upstreamTimeoutMs, proxy, dispatcher });
  opened.defer(() => void transport.close());

  const petApi = new PetApi({ baseUrl: petApiUrl, transport, clock, events, spans, log });
  const getRoute = new GetRoute(clock, petApi);
  const closedOperations = new ClosedOperations(clock, log);
  const serverKey = new ServerKeyState(typeof petApiKey === 'string' ? petApiKey : undefined, log);
  const callers = new Callers({
    petApi,
    getRoute,
    accounts,
    offline: new Set(),
    rejectedKeys: new RejectedKeys(clock, nameOf),
    serverKey,
    closedApi: new ClosedApi(clock, replicas, closedOperations),
    closedOperations,
    memory: new SnapshotMemory(),
    consumerRows: new ConsumerRows(),
    replicas,
    sharedLists,
    idempotency: { records, sendingMs: 2 * upstreamTimeoutMs + OUTCOME_LEASE_MS },
    nameOf,
    idleMs: maxStaleMs,
    clock,
    log,
    events,
    spans,
  });
  opened.defer(() => void callers.close());

  const respond = createGraphqlServer({ settings: checked, callers, health, trusted, events, spans });
  const bodies = new RequestBodies(checked.maxBodyBytes, clock, log);
  const closeOnce = () => (closing ??= close());
  return {
    fetch: createFetch(createFetchHandler(respond, bodies)),
    handle: createNodeHandler(respond, bodies, checked.endpoint),
    execute: createExecute(respond, checked),
    schema,
    quotaReport: () => callers.report().then(({ keys }) => keys),
    admin: metrics && createAdmin({ callers, health, replicas, http }, metrics, log),
    drain,
    ready: async () => void (await Promise.all([stores.ready(), warmUp()])),
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };

  async function close(): Promise<void> {
    await Promise.race([drain(), setTimeout(CLOSE_AFTER_MS, undefined, { ref: false })]);
    await Promise.race([callers.writeBack(), setTimeout(STORING_QUOTA_MS, undefined, { ref: false })]);
    await stores.close();
    await transport.close();
  }

  async function drain(delayMs = 0): Promise<void> {
    isDraining = true;
    if (delayMs > 0) await setTimeout(delayMs);
    await callers.close();
  }

  function health(): Health {
    return {
      isDraining,
      redis: stores.redisState(),
      pausedKeys: callers.pausedKeys,
      isGetRouteWorking: getRoute.isBeforeSunset && !closedOperations.has(GET),
      closed: closedOperations.report(),
      isServerKeyRejected: serverKey.isRejected,
    };
  }
}

/** Runs a query on a gateway without an upstream, so that the code for the first real one is loaded and compiled. */
async function warmUp(): Promise<void> {
  const checked = checkedOptions({
    petApiUrl: 'http://localhost/v1',
    dispatcher: {
      dispatch(_request, handler) {
        new DispatchedCall(handler).respond({ status: 200, body: '[]' });
        return true;
      },
      destroy: async () => {},
    },
  });
  const gateway = assemble(checked, { opened: new DisposableStack(), spans: createSpans(false) });
  await gateway.execute({ document: '{ pets { id name } }', apiKey: 'none' });
  await gateway.close();
}
