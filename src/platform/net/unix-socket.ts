// The door to unix sockets: listening on a path with exact owner and mode, and one question to a listener.
// A stale path of a dead process is taken over, a live one never; nothing but a socket is ever unlinked.

import { lstatSync } from 'node:fs';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { isSystemError, WritError } from '../../core/errors.js';
import { maxSocketPathBytes } from '../../core/limits.js';
import type { DurableFs } from '../disk/durable-fs.js';
import { requireSafePlace } from '../disk/safe-path.js';
import type { Clock } from '../time/clock.js';
import { joinSignals } from '../time/join-signals.js';

export interface ListenOptions {
  readonly path: string;
  /** Mode of the socket file, as 0o660. */
  readonly mode: number;
  /** Group id of the socket file; left out: the process's own. */
  readonly gid?: number;
  readonly onConnection: (socket: Socket) => void;
  readonly durable: DurableFs;
}

export interface UnixListener {
  /** Stops listening and removes the socket file; open connections are the caller's to end. */
  close(): Promise<void>;
}

/**
 * Listens on a unix socket.
 * @throws WritError SOCKET_PATH_TOO_LONG, PATH_UNSAFE, SOCKET_IN_USE, LISTEN_FAILED
 */
export async function listenUnix(options: ListenOptions): Promise<UnixListener> {
  const { path, durable } = options;
  requireSocketPath(path);
  // Who can change it puts a socket of his own there, and is asked in our place.
  requireSafePlace(dirname(path));
  await removeStaleSocket(path, durable);
  const server = createServer((socket) => {
    // A peer that resets its connection must not end the process; 'close' follows and tells the caller.
    socket.on('error', () => socket.destroy());
    options.onConnection(socket);
  });
  try {
    const { gid, mode } = options;
    await bindWithMode(server, path, gid === undefined ? mode : ownerOnly);
    if (gid !== undefined) {
      // The group before the mode: at no time may a wrong group have the right to connect.
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
 * Node 20 binds and connects to a cut-off name without a word when the path is too long.
 * @throws WritError SOCKET_PATH_TOO_LONG
 */
export function requireSocketPath(path: string): void {
  if (fitsSocket(path)) return;
  const facts = { path, expected: maxSocketPathBytes, actual: Buffer.byteLength(path) };
  throw new WritError('SOCKET_PATH_TOO_LONG', `${path} is longer than a socket path may be`, { facts });
}

/** For a path that nobody configured as it is, as one with the name of a worker in it. */
export function fitsSocket(path: string): boolean {
  return Buffer.byteLength(path) <= maxSocketPathBytes;
}

const ownerOnly = 0o600;

/** bind() makes the file before listen() returns: by the umask it has its mode at once, and never another one. */
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

/** A socket on which nobody listens is removed; anything else stays. @throws WritError SOCKET_IN_USE */
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

/** @returns `connected`, or the code of the system's error */
function tryConnect(place: SocketPlace): Promise<string> {
  return new Promise((resolve) => {
    if ('path' in place && !fitsSocket(place.path)) return resolve('ENAMETOOLONG');
    const socket = createConnection(place);
    // Only TCP waits here, for a host that does not answer.
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

/** @returns whether anybody listens there just now; `unknown` where this process may not ask, or hears nothing */
export async function isListening(place: SocketPlace): Promise<'yes' | 'no' | 'unknown'> {
  const answer = await tryConnect(place);
  if (answer === 'connected') return 'yes';
  return answer === 'ECONNREFUSED' || answer === 'ENOENT' ? 'no' : 'unknown';
}

export interface ExchangeOptions<T> {
  readonly path: string;
  /** Sent at once, whether or not the other end speaks first. */
  readonly request: Uint8Array | string;
  /** Takes the next bytes; anything but undefined is the answer and ends the exchange. */
  readonly read: (chunk: Uint8Array) => T | undefined;
  /** For protocols whose answer ends with the connection: gives the answer, if it is complete. */
  readonly readEnd?: () => T | undefined;
  /** `after-request`: for the rare listener that answers only when its client has shut its side. */
  readonly halfClose?: 'never' | 'after-request';
  /** `until-deadline`: for listeners whose socket is away for a moment while they reload. */
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
 * Asks one question and waits for its answer. Never throws for what the other end does, and half-closes only when
 * it is told to: some daemons drop the answer when their client shuts its side.
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
  /** Nobody waits any more. */
  readonly over: AbortSignal;
  socket?: Socket;
  /** Why the last try to connect failed. */
  errno?: string;
  /** How often somebody took the connection and closed it with the request unread. */
  unread: number;
}

const connectAgainMs = 50;
/**
 * Nobody can have read the request: nobody listens, or the other end closed with it unread, which Linux says by
 * ECONNRESET (af_unix, unix_release_sock), as for a connection that waited to be accepted by a process that ends.
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
    // One that reads a part of the request, acts on it and closes would be told again and again.
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

/** Closes a connection when the time is over, whatever comes on it until then, or its `stop` is called. */
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
