import type { Clock } from '../clock.ts';
import type { Log } from '../log.ts';
import type { Transport, TransportFailure, TransportResponse } from './transport.ts';

/** A service that comes and goes would fill the log. */
const TOLD_EVERY_MS = 60_000;

/**
 * Changes nothing about a call, and tells the log once when the service cannot be reached, with the reason, and once when it
 * can again: at most once a minute each. A name that is wrong or a certificate that has expired is seen there alone.
 */
export function watchedTransport(transport: Transport, { elapsed }: Pick<Clock, 'elapsed'>, log: Log): Transport {
  let toldAtMs = -Infinity;
  /** Whether it was told, and its end was not. */
  let told = false;
  let closed = false;
  return {
    async send(request) {
      const result = await transport.send(request);
      // What was under way when it was closed fails, and says nothing of the service.
      if (!closed) note(result);
      return result;
    },
    close() {
      closed = true;
      return transport.close();
    },
  };

  function note(result: TransportFailure | TransportResponse): void {
    if (result.kind === 'failure' && result.reason === 'unreachable') {
      if (told || elapsed() - toldAtMs < TOLD_EVERY_MS) return;
      told = true;
      toldAtMs = elapsed();
      log.warn({ reason: result.code }, 'the service cannot be reached');
    } else if (told && (result.kind === 'response' || result.sent)) {
      told = false;
      log.info({}, 'the service can be reached again');
    }
  }
}
