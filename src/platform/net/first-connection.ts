// Connects to the first address of a name that answers, as in RFC 8305 section 5: the next attempt begins after 250 ms or after
// the failure of the previous one, and earlier attempts continue. Owns all sockets until one has connected.
import { ADDRCONFIG } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { isSystemError } from '../../core/errors.js';
import type { Clock } from '../time/clock.js';
import { joinSignals } from '../time/join-signals.js';
import { type AddressFailure, ConnectError } from './connect-failure.js';

/** @returns the addresses of a name in the order of preference. @throws a system error, as ENOTFOUND */
export type Lookup = (name: string) => Promise<readonly string[]>;

export interface ConnectOptions {
  /** A name or an address, the latter without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** Timeout of each attempt, and of the name lookup. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'sleep'>;
  /** Name lookup; that of the system by default. */
  readonly lookup?: Lookup | undefined;
  /** Aborting ends all attempts. */
  readonly signal?: AbortSignal | undefined;
}

/** RFC 8305 section 8: Connection Attempt Delay. */
const nextAttemptMs = 250;
/** Limit of addresses per connection. A resolver may return others first at the next connection. */
const maxAddresses = 16;

/** Leaves out addresses of a family that this host does not have, as Node does. */
const systemLookup: Lookup = async (name) =>
  (await lookup(name, { all: true, hints: ADDRCONFIG })).map(({ address }) => address);

/**
 * Opens a TCP connection to the first address of a name that answers. At most 16 addresses are tried, 250 ms apart or at once
 * after a failure.
 * @param options `timeoutMs` applies to each attempt and to the name lookup; an address as `hostname` needs no lookup
 * @returns the connected socket, which the caller owns; the other attempts are closed
 * @throws ConnectError with the errno of each address, as ECONNREFUSED, ETIMEDOUT or, after an abort, ECANCELED
 * @throws a system error if the lookup fails: ENOTFOUND for a name without an address, EAI_AGAIN after its timeout or an abort
 */
export async function openFirstConnection(options: ConnectOptions): Promise<Socket> {
  const { hostname, clock } = options;
  const found = isIP(hostname) === 0 ? await addressesOf(options) : [hostname];
  const addresses = found.slice(0, maxAddresses);
  const won = new AbortController();
  using over = joinSignals(won.signal, options.signal);
  const failures: AddressFailure[] = [];
  const attempts: Promise<Socket>[] = [];
  let turn: Promise<unknown> = Promise.resolve();
  for (const [index, address] of addresses.entries()) {
    const attempt = turn.then(() => openConnection({ ...options, address, won, signal: over.signal }));
    const failed = attempt.catch((errno: string) => {
      failures[index] = { address, errno };
    });
    const delay = turn.then(() => clock.sleep(nextAttemptMs, over.signal));
    turn = Promise.race([failed, delay]);
    attempts.push(attempt);
  }
  try {
    return await Promise.any(attempts);
  } catch {
    throw new ConnectError(failures, isIP(hostname) === 0 ? hostname : undefined);
  }
}

async function addressesOf({ hostname, lookup = systemLookup, ...options }: ConnectOptions) {
  const found = new AbortController();
  using over = joinSignals(found.signal, options.signal);
  const tooLong = options.clock.sleep(options.timeoutMs, over.signal).then(() => {
    throw Object.assign(new Error(`no answer of the resolver for ${options.timeoutMs} ms`), {
      code: 'EAI_AGAIN',
    });
  });
  try {
    const addresses = await Promise.race([lookup(hostname), tooLong]);
    if (addresses.length > 0) return addresses;
    throw Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' });
  } finally {
    found.abort();
    tooLong.catch(() => undefined);
  }
}

interface Attempt extends Pick<ConnectOptions, 'port' | 'timeoutMs' | 'clock'> {
  readonly address: string;
  /** The first attempt that connects aborts this before it returns its socket. */
  readonly won: AbortController;
  /** Ends all attempts. */
  readonly signal: AbortSignal;
}

/** Opens a connection to one address. Rejects with the name of the errno. */
function openConnection({ address, port, timeoutMs, clock, won, signal }: Attempt): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject('ECANCELED');
    const socket = connect({ host: address, port });
    const timer = new AbortController();
    const settle = (): void => {
      timer.abort();
      signal.removeEventListener('abort', cancel);
    };
    const end = (errno: string): void => {
      settle();
      socket.destroy();
      reject(errno);
    };
    const cancel = (): void => end('ECANCELED');
    const fail = (error: Error): void => end(isSystemError(error) ? String(error.code) : error.name);
    signal.addEventListener('abort', cancel, { once: true });
    void clock.sleep(timeoutMs, timer.signal).then(() => {
      if (!timer.signal.aborted) end('ETIMEDOUT');
    });
    socket.on('error', fail).once('connect', () => {
      settle();
      socket.off('error', fail);
      won.abort();
      resolve(socket);
    });
  });
}
