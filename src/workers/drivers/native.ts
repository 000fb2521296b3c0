// Workers that speak Writ's own protocol (docs/native-protocol.md): they connect to the agent, are notified of a
// generation, and answer ack or nack after they have tried it. Owns the group's socket and who is connected.
import { dirname, join } from 'node:path';
import type { NotNowConfig } from '../../core/config/config.js';
import { notNowOfText } from '../../core/config/not-now-keys.js';
import { namePattern } from '../../core/names.js';
import { requireSafePathOrParent } from '../../platform/disk/safe-path.js';
import { listenUnix, requireSocketPath, type UnixListener } from '../../platform/net/unix-socket.js';
import type { Clock } from '../../platform/time/clock.js';
import { resolveGroup } from '../../platform/users/group-id.js';
import { notNow, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, Target } from '../contract/driver.js';
import { livenessWithin } from '../contract/liveness.js';
import { claimedProcess } from '../identity/connected-process.js';
import { type NativeConnection, serveNativeWorker } from '../protocols/native-connection.js';
import { driverKind, type OptionsOf, property, text } from '../shared/driver-options.js';
import { notNowRule } from '../shared/not-now.js';

const maxConnections = 256;
const defaultSocketMode = '0660';

const socketGroup = property<string | number>({
  type: ['string', 'integer'],
  pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,31}$',
  minimum: 0,
  maximum: 4_294_967_294,
  description: 'the name or number of a group',
});

const properties = {
  native: text('a name: up to 64 of a-z 0-9 . _ - that begins with a letter or digit', {
    pattern: namePattern,
  }),
  // Whoever may connect may veto: never the whole host.
  socketMode: text('a file mode in quotes that gives others nothing, as "0660"', {
    pattern: '^0[0-7][0-7]0$',
  }),
  socketGroup,
  notNow: property<NotNowConfig>(notNowOfText),
};

type NativeOptions = OptionsOf<typeof properties, 'native'>;

export const native = driverKind({ name: 'native', properties, knowsProcess: true, create: createDriver });

interface Connected {
  /** Of the connection: the start of this agent, and the number of the connection. */
  readonly identity: string;
  /** Pid and start time, where they are known. */
  process?: string | undefined;
  id?: string;
}

/** A process that connects again has proved nothing: the connection is a part, after a slash. */
function identityOf(one: Connected | undefined): string | undefined {
  return one?.process === undefined ? one?.identity : `${one.process}/${one.identity}`;
}

function lifeOf(one: Connected | undefined): string | undefined {
  return one?.process ?? one?.identity;
}

function createDriver(options: NativeOptions, context: DriverContext): Driver {
  const path = join(context.runDirectory, 'workers', `${options.native}.sock`);
  requireSocketPath(path);
  const log = context.log.child({ group: context.group });
  /** Every open connection: who connects again has answered nothing yet, whatever it said over the one before. */
  const connections = new Map<NativeConnection, Connected>();
  const ids = (): string[] => [...connections.values()].flatMap(({ id }) => id ?? []);
  const judged = judgedBy(options);
  const beganAtMs = context.clock.nowMs();
  let accepted = 0;
  let active: Target | undefined;
  let listener: UnixListener | undefined;

  const accept = (socket: Parameters<typeof serveNativeWorker>[0]): void => {
    if (connections.size >= maxConnections) {
      refuseConnection(socket, log);
      return;
    }
    accepted += 1;
    const worker: Connected = { identity: `${beganAtMs}.${accepted}` };
    const connection = serveNativeWorker(socket, {
      clock: context.clock,
      log,
      onHello: ({ name, pid }) => {
        // Now, and not at each look: the pid of a process that has ended may be used again.
        worker.process = claimedProcess(pid);
        worker.id = freeId(name, ids());
        if (active !== undefined) connection.notify(active);
      },
      onLateAnswer: (generation, answer) =>
        context.onLateAnswer?.(worker.id ?? '', generation, judged(answer), identityOf(worker)),
      onSilence: (reason) => {
        const { id } = worker;
        if (id === undefined || active === undefined) return;
        // As an answer that was not given: its proof is over, and it is notified again until it answers.
        context.onLateAnswer?.(id, active.generation, unreachable(reason), identityOf(worker));
      },
      onClose: () => connections.delete(connection),
    });
    connections.set(connection, worker);
  };

  const placeOf = (worker: string) => [...connections].find(([, { id }]) => id === worker);

  return {
    verdictClass: 'true',
    open: async () => {
      ensureSocketDirectory(context, dirname(path));
      const group = options.socketGroup;
      listener = await listenUnix({
        path,
        durable: context.durable,
        mode: Number.parseInt(options.socketMode ?? defaultSocketMode, 8),
        ...(group === undefined ? {} : { gid: resolveGroup(group) }),
        onConnection: accept,
      });
    },
    members: async () => ids().sort(),
    reset: async (worker, reset) =>
      judged((await placeOf(worker)?.[0].ask(reset)) ?? unreachable('not connected')),
    keepsProcess: 'yes',
    mayComeForMs: timeToCome(context.clock),
    identity: async (worker) => identityOf(placeOf(worker)?.[1]),
    runIdentity: async (worker) => lifeOf(placeOf(worker)?.[1]),
    liveness: (worker) =>
      livenessWithin({ clock: context.clock, graceMs: reconnectGraceMs }, async () =>
        placeOf(worker) === undefined ? 'dead' : 'alive',
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

function ensureSocketDirectory({ durable }: Pick<DriverContext, 'durable'>, path: string): void {
  // Before it is created: root would create it where a link of another user leads.
  requireSafePathOrParent(path);
  durable.ensureDirectory('native.directory', path, 0o755);
}

function refuseConnection(socket: Parameters<typeof serveNativeWorker>[0], log: DriverContext['log']): void {
  log.warn({ expected: maxConnections }, 'too many native workers: a connection was refused');
  socket.destroy();
}

/** Of a nack, whose lines are one by now, the first counts. */
function judgedBy(options: NativeOptions): (answer: Answer) => Answer {
  const busy = notNowRule(options.notNow);
  const isBusy = ({ kind, text }: Answer): boolean =>
    kind === 'refused' && busy.forText(text.split(' | ')[0] ?? '');
  return (answer) => (isBusy(answer) ? notNow(answer.text) : answer);
}

/** The library tries again at least every 5 s. */
const comeWithinMs = 6000;

/** Counts from now on: a driver is opened as soon as it is made. */
function timeToCome(clock: Clock): () => number {
  const endMs = clock.monotonicMs() + comeWithinMs;
  return () => Math.max(0, endMs - clock.monotonicMs());
}

/** Two workers of one name are `name` and `name#2`; a place that is free again is taken again. */
function freeId(name: string, taken: readonly string[]): string {
  if (!taken.includes(name)) return name;
  let number = 2;
  while (taken.includes(`${name}#${number}`)) number += 1;
  return `${name}#${number}`;
}

/** A worker may connect again, as the library does after a moment; one that stays away does not live for us. */
const reconnectGraceMs = 2000;
