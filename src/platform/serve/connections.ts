// The places of all connections: who is idle, who has not said what it wants, who is answered and how fast it takes that. When
// all are taken, a newcomer gets the place of who only keeps one. Owns the places, and reads no byte.
import type { Socket } from 'node:net';
import { beginPace, judgePace, type Pace } from './pace-rules.js';
import type { ServerLimits } from './server-limits.js';

export interface Connections {
  /** @returns false where all places are taken, and each by an answer that is on its way */
  take(socket: Socket): boolean;
  /** @param socket the one that was taken, or TLS on it */
  answerBegun(socket: Socket): void;
  answerEnded(socket: Socket): void;
  /** Ends whoever takes nothing of its answer, or too little. @param elapsedMs since the last look */
  look(elapsedMs: number): void;
  destroyAll(): void;
}

export interface ConnectionsOptions {
  readonly limits: ServerLimits;
  readonly onEnded: (socket: Socket, why: 'displaced' | 'slow') => void;
}

interface Connection {
  readonly socket: Socket;
  /** Kept: a socket that is closed has no address any more. */
  readonly peer: string;
  /** The socket, or TLS on it; absent before the first request. */
  asking?: Socket;
  answersUnderWay: number;
  /** What had been read when the last answer was out: more is a next request. Absent before the first answer. */
  readWhenIdle?: number;
  pace: Pace;
}

export function createConnections({ limits, onEnded }: ConnectionsOptions): Connections {
  const open = new Map<string, Connection>();
  // Whom requests come from: TLS on a connection is another socket, and its address is asked for once.
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
    // The client may have a new connection from the same port by now.
    if (open.get(connection.peer) === connection) open.delete(connection.peer);
  };
  const makeRoom = (): boolean => {
    const longest = queues.first();
    if (longest === undefined) return false;
    leave(longest);
    onEnded(longest.socket, 'displaced');
    longest.socket.destroy();
    return true;
  };
  const lookAt = (connection: Connection, elapsedMs: number): void => {
    const { socket, answersUnderWay, pace } = connection;
    const verdict = judgePace(pace, movedBytes(connection), elapsedMs, limitsOf(connection, limits));
    if (verdict.kind === 'too-slow') {
      leave(connection);
      if (answersUnderWay > 0) onEnded(socket, 'slow');
      // With a reset: what waits in the kernel for a client that takes nothing would be held on.
      socket.resetAndDestroy();
      return;
    }
    connection.pace = verdict.pace;
    if (answersUnderWay > 0) queues.setStalled(connection, verdict.pace.quietMs >= limits.giveWayAfterMs);
  };
  return {
    take: (socket) => {
      if (open.size >= limits.maxConnections && !makeRoom()) return false;
      const connection = { socket, peer: peerOf(socket), answersUnderWay: 0, pace: beginPace(0) };
      open.set(connection.peer, connection);
      queues.asking.add(connection);
      socket.once('close', () => leave(connection));
      return true;
    },
    answerBegun: (socket) => {
      const connection = connectionOf(socket);
      if (connection === undefined) return;
      connection.answersUnderWay += 1;
      queues.remove(connection);
      connection.pace = beginPace(movedBytes(connection));
    },
    answerEnded: (socket) => {
      const connection = connectionOf(socket);
      if (connection === undefined) return;
      connection.answersUnderWay -= 1;
      if (connection.answersUnderWay > 0) return;
      queues.remove(connection);
      queues.keptAlive.add(connection);
      connection.readWhenIdle = connection.socket.bytesRead;
      connection.pace = beginPace(movedBytes(connection));
    },
    look: (elapsedMs) => {
      for (const connection of [...open.values()]) lookAt(connection, elapsedMs);
    },
    destroyAll: () => {
      for (const { socket } of open.values()) socket.destroy();
    },
  };
}

/** Who may be sent away, in the order in which they are; each queue the longest first. */
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
      // What came or went since the last look is seen here: the parser of HTTP has the sockets to itself.
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

/** The same for a socket and for TLS on it. */
function peerOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

/** What an answer moves is what the kernel has taken of it: requests sent meanwhile are no sign that it is read. */
function movedBytes({ socket, answersUnderWay }: Connection): number {
  return answersUnderWay > 0 ? takenBytes(socket) : takenBytes(socket) + socket.bytesRead;
}

function takenBytes(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength;
}

/** Little is no fault where no answer is under way. */
function limitsOf({ answersUnderWay, readWhenIdle }: Connection, limits: ServerLimits): ServerLimits {
  if (answersUnderWay > 0) return limits;
  const idleTimeoutMs = readWhenIdle === undefined ? limits.idleTimeoutMs : limits.keepAliveTimeoutMs;
  return { ...limits, idleTimeoutMs, minBytesPerWindow: 0 };
}
