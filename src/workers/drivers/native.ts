// Workers that speak Writ's own protocol (docs/native-protocol.md): they connect to the agent, are told a
// generation, and answer ack or nack after they have tried it. Owns the group's socket and who is connected.
import { dirname, join } from 'node:path';
import { namePattern } from '../../core/names.js';
import { listenUnix, requireSocketPath, type UnixListener } from '../../platform/net/unix-socket.js';
import type { Clock } from '../../platform/time/clock.js';
import { lookUpGroup } from '../../platform/users/group-id.js';
import { unreachable } from '../contract/answer.js';
import type { Driver, DriverContext, DriverKind, Target } from '../contract/driver.js';
import { livenessWithin } from '../contract/liveness.js';
import { type NativeConnection, serveNativeWorker } from '../protocols/native-connection.js';

const maxConnections = 256;
const defaultSocketMode = '0660';

interface NativeOptions {
  readonly native: string;
  readonly socketMode?: string;
  readonly socketGroup?: string | number;
}

export const native: DriverKind = {
  name: 'native',
  properties: {
    native: {
      type: 'string',
      pattern: namePattern,
      description: 'a name: up to 64 of a-z 0-9 . _ - that begins with a letter or digit',
    },
    socketMode: {
      type: 'string',
      // Whoever may connect may veto: never the whole host.
      pattern: '^0[0-7][0-7]0$',
      description: 'a file mode in quotes that gives others nothing, as "0660"',
    },
    socketGroup: {
      type: ['string', 'integer'],
      pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,31}$',
      minimum: 0,
      maximum: 4_294_967_294,
      description: 'the name or number of a group',
    },
  },
  required: [],
  create: (options, context) => createNativeDriver(options as unknown as NativeOptions, context),
};

function createNativeDriver(options: NativeOptions, context: DriverContext): Driver {
  const path = join(context.runDirectory, 'workers', `${options.native}.sock`);
  requireSocketPath(path);
  const log = context.log.child({ group: context.group });
  /** Every open connection, with the id of its worker once that has said hello. */
  const connections = new Map<NativeConnection, string | undefined>();
  const identities = new Map<NativeConnection, string>();
  const beganAtMs = context.clock.nowMs();
  let accepted = 0;
  let active: Target | undefined;
  let listener: UnixListener | undefined;

  const accept = (socket: Parameters<typeof serveNativeWorker>[0]): void => {
    if (connections.size >= maxConnections) {
      log.warn({ expected: maxConnections }, 'too many native workers: a connection was refused');
      socket.destroy();
      return;
    }
    const connection = serveNativeWorker(socket, {
      clock: context.clock,
      log,
      onHello: (name) => {
        connections.set(connection, freeId(name, connections.values()));
        if (active !== undefined) connection.tell(active);
      },
      onLateAnswer: (generation, answer) => {
        const identity = identities.get(connection);
        context.onLateAnswer?.(connections.get(connection) ?? '', generation, answer, identity);
      },
      onClose: () => {
        connections.delete(connection);
        identities.delete(connection);
      },
    });
    connections.set(connection, undefined);
    accepted += 1;
    identities.set(connection, `${beganAtMs}.${accepted}`);
  };

  const connectionOf = (worker: string): NativeConnection | undefined =>
    [...connections].find(([, id]) => id === worker)?.[0];

  return {
    verdictClass: 'true',
    open: async () => {
      context.durable.ensureDirectory('native.directory', dirname(path), 0o755);
      const group = options.socketGroup;
      listener = await listenUnix({
        path,
        durable: context.durable,
        mode: Number.parseInt(options.socketMode ?? defaultSocketMode, 8),
        ...(group === undefined ? {} : { gid: lookUpGroup(group) }),
        onConnection: accept,
      });
    },
    members: async () => [...connections.values()].filter((id) => id !== undefined).sort(),
    reset: async (worker, reset) => {
      return connectionOf(worker)?.ask(reset) ?? unreachable('not connected');
    },
    keepsProcess: 'yes',
    mayComeForMs: timeToCome(context.clock),
    // Who connects anew has answered nothing yet, whatever it said over the connection before.
    identity: async (worker) => {
      const connection = connectionOf(worker);
      return connection && identities.get(connection);
    },
    liveness: (worker) =>
      livenessWithin({ clock: context.clock, graceMs: reconnectGraceMs }, async () =>
        connectionOf(worker) === undefined ? 'dead' : 'alive',
      ),
    activeChanged: (target) => {
      active = target;
    },
    close: async () => {
      const closing = listener?.close();
      for (const connection of connections.keys()) connection.close();
      await closing;
    },
  };
}

/** The library tries again at least every 5 s. */
const comeWithinMs = 6000;

/** Counts from now on: a driver is opened as soon as it is made. */
function timeToCome(clock: Clock): () => number {
  const endMs = clock.monotonicMs() + comeWithinMs;
  return () => Math.max(0, endMs - clock.monotonicMs());
}

/** Two workers of one name are `name` and `name#2`; a place that is free again is taken again. */
function freeId(name: string, taken: Iterable<string | undefined>): string {
  const used = new Set(taken);
  if (!used.has(name)) return name;
  let number = 2;
  while (used.has(`${name}#${number}`)) number += 1;
  return `${name}#${number}`;
}

/** A worker may connect anew, as the library does after a moment; one that stays away does not live for us. */
const reconnectGraceMs = 2000;
