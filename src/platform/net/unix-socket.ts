// Unix sockets: listens on a path with an exact group and mode, and sends one request to a listener. Replaces the stale socket
// of a dead process, never one with a listener. Removes nothing but sockets.

import { lstatSync } from 'node:fs';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import { maxSocketPathBytes } from '../../core/limits.js';
import type { DurableFs } from '../disk/durable-fs.js';
import { requireSafePathOrParent } from '../disk/safe-path.js';
import type { Clock } from '../time/clock.js';
import { joinSignals } from '../time/join-signals.js';

export interface ListenOptions {
  readonly path: string;
  /** Mode of the socket file, such as 0o660. */
  readonly mode: number;
  /** Group id of the socket file; left out: the group of this process. */
  readonly gid?: number;
  readonly onConnection: (socket: Socket) => void;
  readonly durable: DurableFs;
}

export interface UnixListener {
  /** Stops listening and removes the socket file. The caller closes open connections. */
  close(): Promise<void>;
}

/**
 * Listens on a unix socket.
 * @throws WritError SOCKET_PATH_TOO_LONG, PATH_UNSAFE, SOCKET_IN_USE, LISTEN_FAILED
 */
export async function listenUnix(options: ListenOptions): Promise<UnixListener> {
  const { path, durable } = options;
  requireSocketPath(path);
  // A user who can change the directory could replace the socket and receive the requests.
  requireSafePathOrParent(dirname(path));
  await removeStaleSocket(path, durable);
  const server = createServer((socket) => {
    // A connection reset by the peer must not end the process; the caller handles the 'close' that follows.
    socket.on('error', () => socket.destroy());
    options.onConnection(socket);
  });
  try {
    const { gid, mode } = options;
    await bindWithMode(server, path, gid === undefined ? mode : ownerOnly);
    if (gid !== undefined) {
      // Set the group before the mode, so that a wrong group never has the permission to connect.
      durable.changeGroup('socket.group', path, gid);
      durable.changeMode('socket.mode', path, mode);
    }
  } catch (cause) {
    server.close();
    throw new WritError('LISTEN_FAILED', `cannot listen on ${path}: ${reasonOf(cause)}`, {
      facts: { path },
      hint: 'Check the directory, its owner and the configured group of the socket.',
      cause,
    });
  }
  return { close: () => new Promise((resolve) => server.close(() => resolve())) };
}

/**
 * Rejects a path that is too long, because Node 20 silently truncates it in bind and connect.
 * @throws WritError SOCKET_PATH_TOO_LONG
 */
export function requireSocketPath(path: string): void {
  if (fitsSocket(path)) return;
  const facts = { path, expected: maxSocketPathBytes, actual: Buffer.byteLength(path) };
  throw new WritError('SOCKET_PATH_TOO_LONG', `${path} is longer than a socket path may be`, { facts });
}

/** @returns false if the path is too long; for a path that is not configured itself, such as one with the name of a worker */
export function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= maxSocketPathBytes;
}

const ownerOnly = 0o600;

/** bind() creates the file before listen() returns. The umask gives it the mode at once, so that it never has another one. */
function bindWithMode(server: Server, path: string, mode: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const inherited = process.umask(0o777 & ~mode);
    try {
      server.listen(path, () => {
        server.removeListener('error', reject);
        resolve();
      });
    } finally {
      process.umask(inherited);
    }
  });
}

/** Removes a socket without a listener. Any other file stays. @throws WritError SOCKET_IN_USE */
export async function removeStaleSocket(path: string, durable: DurableFs): Promise<void> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) {
    throw new WritError('SOCKET_IN_USE', `${path} exists and is not a socket`, { facts: { path } });
  }
  const answer = await tryConnect({ path });
  if (answer === 'ECONNREFUSED') durable.discardFile('socket.stale', path);
  else if (answer !== 'ENOENT') {
    throw new WritError('SOCKET_IN_USE', `another process listens on ${path}`, { facts: { path, answer } });
  }
}

/** @returns `connected`, or the errno */
function tryConnect(place: SocketPlace): Promise<string> {
  return new Promise((resolve) => {
    if ('path' in place && !fitsSocket(place.path)) return resolve('ENAMETOOLONG');
    const socket = createConnection(place);
    // Only TCP can wait here, for a host that does not answer.
    socket.setTimeout(maxConnectMs, () => {
      socket.destroy();
      resolve('ETIMEDOUT');
    });
    socket.once('connect', () => {
      socket.destroy();
      resolve('connected');
    });
    socket.once('error', (error) => resolve(isSystemError(error) ? String(error.code) : 'failed'));
  });
}

export type SocketPlace = { readonly path: string } | { readonly host: string; readonly port: number };

const maxConnectMs = 2000;

/** @returns whether a process listens now; `unknown` without the permission to connect or without an answer */
export async function probeListener(place: SocketPlace): Promise<'listening' | 'refused' | 'unknown'> {
  const answer = await tryConnect(place);
  if (answer === 'connected') return 'listening';
  return answer === 'ECONNREFUSED' || answer === 'ENOENT' ? 'refused' : 'unknown';
}

export interface ExchangeOptions<T> {
  readonly path: string;
  /** Sent at once, also if the protocol begins with a greeting of the listener. */
  readonly request: Uint8Array | string;
  /** Parses the next bytes; any result except undefined is the response and ends the exchange. */
  readonly read: (chunk: Uint8Array) => T | undefined;
  /** For protocols in which the end of the connection ends the response; undefined: the response is incomplete. */
  readonly readEnd?: () => T | undefined;
  /** `after-request`: for the rare listener that responds only after its client has closed its sending side. */
  readonly halfClose?: 'never' | 'after-request';
  /** `until-deadline`: for listeners that remove their socket for a moment in a reload. */
  readonly connect?: 'once' | 'until-deadline';
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

export type ExchangeResult<T> =
  | { readonly kind: 'answered'; readonly value: T }
  /**
   * `reason`: an errno name, `no answer in N ms`, `ERRNO for N ms`, `closed before its answer was complete`, or
   * `aborted`.
   */
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * Sends one request and waits for its response. Returns failures of the peer as values. Half-closes the connection only if
 * requested, because some daemons drop the response after that.
 */
export async function exchange<T>(options: ExchangeOptions<T>): Promise<ExchangeResult<T>> {
  const { path, timeoutMs, signal, clock } = options;
  if (!fitsSocket(path)) return failed('the path is too long for a socket');
  const settled = new AbortController();
  using waiting = joinSignals(settled.signal, signal);
  const attempt: Attempt = { over: waiting.signal, unread: 0 };
  const deadline = clock.sleep(timeoutMs, waiting.signal).then(() => {
    if (signal?.aborted) return failed('aborted');
    return failed(
      attempt.errno === undefined ? `no answer in ${timeoutMs} ms` : `${attempt.errno} for ${timeoutMs} ms`,
    );
  });
  try {
    return await Promise.race([connectAndAsk(options, attempt), deadline]);
  } finally {
    settled.abort();
    attempt.socket?.destroy();
  }
}

interface Attempt {
  /** Aborted at the end of the exchange. */
  readonly over: AbortSignal;
  socket?: Socket;
  /** Errno of the last failed attempt to connect. */
  errno?: string;
  /** How often a listener accepted the connection and closed it with the request unread. */
  unread: number;
}

const connectAgainMs = 50;
/**
 * Errnos after which no listener can have read the request: there is no listener, or the peer closed with unread data, for
 * which Linux returns ECONNRESET (af_unix, unix_release_sock). A process that ends before it accepts causes the same.
 */
const notRead: ReadonlySet<string> = new Set(['ENOENT', 'ECONNREFUSED', 'EAGAIN', 'ECONNRESET', 'EPIPE']);

const wasAccepted: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);
const maxUnread = 3;

async function connectAndAsk<T>(options: ExchangeOptions<T>, attempt: Attempt): Promise<ExchangeResult<T>> {
  for (;;) {
    const socket = createConnection({ path: options.path });
    attempt.socket = socket;
    const result = await answerOf(socket, options);
    const mayTryAgain =
      options.connect === 'until-deadline' && socket.bytesRead === 0 && !attempt.over.aborted;
    if (!mayTryAgain || result.kind === 'answered' || !notRead.has(result.reason)) return result;
    attempt.errno = result.reason;
    if (wasAccepted.has(result.reason)) attempt.unread += 1;
    // Limit the retries: a listener that reads a part of the request, acts on it and closes would get it again and again.
    if (attempt.unread > maxUnread) return result;
    await options.clock.sleep(connectAgainMs, attempt.over);
  }
}

function answerOf<T>(socket: Socket, options: ExchangeOptions<T>): Promise<ExchangeResult<T>> {
  return new Promise((resolve) => {
    socket.on('data', (chunk: Uint8Array) => {
      const value = options.read(chunk);
      if (value !== undefined) resolve({ kind: 'answered', value });
    });
    socket.on('end', () => {
      const value = options.readEnd?.();
      if (value !== undefined) resolve({ kind: 'answered', value });
    });
    socket.on('error', (error) => resolve(failed(reasonOf(error))));
    socket.on('close', () => resolve(failed('closed before its answer was complete')));
    if (options.halfClose === 'after-request') socket.end(options.request);
    else socket.write(options.request);
  });
}

function failed(reason: string): { readonly kind: 'failed'; readonly reason: string } {
  return { kind: 'failed', reason };
}

function reasonOf(error: unknown): string {
  if (isSystemError(error) && error.code !== undefined) return error.code;
  return error instanceof Error ? error.message : String(error);
}

/** Closes a connection after a timeout, even if data arrives, unless `stop` is called before. */
export function closeAfter(socket: Socket, timeoutMs: number, clock: Pick<Clock, 'sleep'>): { stop(): void } {
  const over = new AbortController();
  const stop = (): void => {
    socket.off('close', stop);
    over.abort();
  };
  socket.once('close', stop);
  void clock.sleep(timeoutMs, over.signal).then(() => {
    if (!over.signal.aborted) socket.destroy();
  });
  return { stop };
}
