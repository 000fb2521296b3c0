// Tracks all connections: idle ones, ones with an incomplete request, and ones with a response and its rate. When all connections are
// in use, a new one displaces the connection that has been idle for the longest time. Owns the connections; reads no data.
import type { Socket } from 'node:net';
import { beginPace, type ConnectionPace, judgePace } from './pace-rules.js';
import type { ServerLimits } from './server-limits.js';

export interface Connections {
  /** @returns false if the maximum is reached and each connection has an active response */
  take(socket: Socket): boolean;
  /** @param socket the accepted one, or the TLS socket on it */
  answerBegun(socket: Socket): void;
  answerEnded(socket: Socket): void;
  /** Closes connections with clients that do not read their response, or too slowly. @param elapsedMs since the last check */
  checkPace(elapsedMs: number): void;
  destroyAll(): void;
}

export interface ConnectionsOptions {
  readonly limits: ServerLimits;
  readonly onEnded: (socket: Socket, why: 'displaced' | 'slow') => void;
}

interface Connection {
  readonly socket: Socket;
  /** Stored, because a closed socket has no address any more. */
  readonly peer: string;
  /** The socket of the requests: the accepted one or the TLS socket on it; absent before the first request. */
  asking?: Socket;
  openAnswers: number;
  /** Bytes that had been read at the end of the last response. More bytes are the next request. Absent before the first response. */
  readWhenIdle?: number;
  pace: ConnectionPace;
}

/** @returns the tracking of one listener, without a connection */
export function createConnections({ limits, onEnded }: ConnectionsOptions): Connections {
  const open = new Map<string, Connection>();
  // Connections by the socket of their requests. TLS has its own socket; its address is read only once.
  const bySocket = new Map<Socket, Connection>();
  const queues = createQueues();
  const connectionOf = (socket: Socket): Connection | undefined => {
    const known = bySocket.get(socket);
    if (known !== undefined) return known;
    const connection = open.get(peerOf(socket));
    if (connection === undefined) return undefined;
    connection.asking = socket;
    bySocket.set(socket, connection);
    return connection;
  };
  const leave = (connection: Connection): void => {
    queues.remove(connection);
    if (connection.asking !== undefined) bySocket.delete(connection.asking);
    // Keep a newer connection from the same port of the client.
    if (open.get(connection.peer) === connection) open.delete(connection.peer);
  };
  const displaceOldest = (): boolean => {
    const longest = queues.first();
    if (longest === undefined) return false;
    leave(longest);
    onEnded(longest.socket, 'displaced');
    longest.socket.destroy();
    return true;
  };
  const checkConnection = (connection: Connection, elapsedMs: number): void => {
    const { socket, openAnswers, pace } = connection;
    const verdict = judgePace(pace, movedBytes(connection), elapsedMs, limitsOf(connection, limits));
    if (verdict.kind === 'too-slow') {
      leave(connection);
      if (openAnswers > 0) onEnded(socket, 'slow');
      // Reset it, because otherwise the kernel keeps the unread data of a client that does not read.
      socket.resetAndDestroy();
      return;
    }
    connection.pace = verdict.pace;
    if (openAnswers > 0) queues.setStalled(connection, verdict.pace.quietMs >= limits.displaceAfterMs);
  };
  return {
    take: (socket) => {
      if (open.size >= limits.maxConnections && !displaceOldest()) return false;
      const connection = { socket, peer: peerOf(socket), openAnswers: 0, pace: beginPace(0) };
      open.set(connection.peer, connection);
      queues.asking.add(connection);
      socket.once('close', () => leave(connection));
      return true;
    },
    answerBegun: (socket) => {
      const connection = connectionOf(socket);
      if (connection === undefined) return;
      connection.openAnswers += 1;
      queues.remove(connection);
      connection.pace = beginPace(movedBytes(connection));
    },
    answerEnded: (socket) => {
      const connection = connectionOf(socket);
      if (connection === undefined) return;
      connection.openAnswers -= 1;
      if (connection.openAnswers > 0) return;
      queues.remove(connection);
      queues.keptAlive.add(connection);
      connection.readWhenIdle = connection.socket.bytesRead;
      connection.pace = beginPace(movedBytes(connection));
    },
    checkPace: (elapsedMs) => {
      for (const connection of [...open.values()]) checkConnection(connection, elapsedMs);
    },
    destroyAll: () => {
      for (const { socket } of open.values()) socket.destroy();
    },
  };
}

/** Connections that may be displaced, in this order of queues; in each queue the longest idle one first. */
function createQueues() {
  const keptAlive = new Set<Connection>();
  const asking = new Set<Connection>();
  const stalled = new Set<Connection>();
  const all = [keptAlive, asking, stalled];
  return {
    keptAlive,
    asking,
    setStalled: (one: Connection, isStalled: boolean) =>
      void (isStalled ? stalled.add(one) : stalled.delete(one)),
    remove: (one: Connection): void => {
      for (const queue of all) queue.delete(one);
    },
    first: (): Connection | undefined => {
      // Detect progress since the last check here, because the HTTP parser owns the sockets and reports none.
      for (const one of keptAlive) {
        if (one.socket.bytesRead === one.readWhenIdle) break;
        keptAlive.delete(one);
        asking.add(one);
      }
      for (const one of stalled) {
        if (takenBytes(one.socket) === one.pace.movedBytes) break;
        stalled.delete(one);
      }
      for (const [longest] of all) if (longest !== undefined) return longest;
      return undefined;
    },
  };
}

/** Identifies a connection. Equal for a socket and the TLS socket on it. */
function peerOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/** Bytes that show progress. For a response only those that the kernel accepted: further requests do not show that it is read. */
function movedBytes({ socket, openAnswers }: Connection): number {
  return openAnswers > 0 ? takenBytes(socket) : takenBytes(socket) + socket.bytesRead;
}

function takenBytes(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}

/** A connection without an active response has no minimum throughput. */
function limitsOf({ openAnswers, readWhenIdle }: Connection, limits: ServerLimits): ServerLimits {
  if (openAnswers > 0) return limits;
  const idleTimeoutMs = readWhenIdle === undefined ? limits.idleTimeoutMs : limits.keepAliveTimeoutMs;
  return { ...limits, idleTimeoutMs, minBytesPerWindow: 0 };
}
