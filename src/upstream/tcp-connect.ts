import { lookup } from 'node:dns';
import type { LookupAddress } from 'node:dns';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { ADDRESS_ALONE_MS } from '../common/times.ts';

interface TcpTarget {
  /** A name or an address. */
  readonly hostname: string;
  readonly port: number;
  /** Max wait for the lookup and all addresses together, in milliseconds. */
  readonly timeoutMs: number;
}

/** Gets the connection, or why there is none. */
type Connected = (...result: [error: null, socket: Socket] | [error: Error, socket: null]) => void;

/**
 * Connects to the address of a host that answers first: each further one is tried beside those before it (RFC 8305). Node itself
 * ends an attempt after 250 ms, so that a slow address before a dead one always fails.
 */
export function connectTcp({ hostname, port, timeoutMs }: TcpTarget, connected: Connected): void {
  const left: string[] = [];
  const attempts = new Set<Socket>();
  const deadline = setTimeout(() => end(timeoutError(), null), timeoutMs);
  let next: NodeJS.Timeout | undefined;
  let isOver = false;

  lookup(hostname, { all: true }, (error, addresses) => {
    if (isOver) return;
    if (error) return end(error, null);
    left.push(...inTurn(addresses));
    tryNext();
  });

  function tryNext(failure?: Error): void {
    clearTimeout(next);
    const host = left.shift();
    if (host !== undefined) {
      attempt(host);
      next = setTimeout(tryNext, ADDRESS_ALONE_MS);
    } else if (failure && attempts.size === 0) end(failure, null);
  }

  function attempt(host: string): void {
    const socket = connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 });
    attempts.add(socket);
    const onError = (error: Error) => {
      attempts.delete(socket);
      tryNext(error);
    };
    socket.once('error', onError).once('connect', () => {
      attempts.delete(socket);
      end(null, socket.off('error', onError));
    });
  }

  function end(...result: Parameters<Connected>): void {
    isOver = true;
    clearTimeout(deadline);
    clearTimeout(next);
    for (const socket of attempts) socket.destroy();
    connected(...result);
  }
}

/** Orders addresses so that the families take turns, as RFC 8305 has it. */
function inTurn(addresses: readonly LookupAddress[]): string[] {
  const first = addresses.filter(({ family }) => family === addresses[0]?.family);
  const others = addresses.filter(({ family }) => family !== addresses[0]?.family);
  return addresses
    .flatMap((_address, index) => [first[index], others[index]])
    .flatMap((address) => (address ? [address.address] : []));
}

function timeoutError(): Error {
  return Object.assign(new Error('no address has answered'), { code: 'ETIMEDOUT' });
}
