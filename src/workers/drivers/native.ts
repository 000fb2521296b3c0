// Workers with Writ's own protocol (docs/native-protocol.md): they connect to the agent, are notified of a generation, try it, and
// answer ack or nack. Owns the socket of the group and the list of connections.
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
import { deferralRule } from '../shared/not-now.js';

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
  // Every process that may connect can refuse a release, so the mode must exclude other users.
  socketMode: text('a file mode in quotes that gives others nothing, as "0660"', {
    pattern: '^0[0-7][0-7]0$',
  }),
  socketGroup,
  notNow: property<NotNowConfig>(notNowOfText),
};

type NativeOptions = OptionsOf<typeof properties, 'native'>;

export const native = driverKind({ name: 'native', properties, knowsProcess: true, create: createDriver });

interface Connected {
  /** Identity of the connection: the start of this agent and the number of the connection. */
  readonly identity: string;
  /** Pid and start time; undefined if unknown. */
  process?: string | undefined;
  id?: string;
}

/** Includes the connection after a slash, because a process that connects again has confirmed nothing. */
function identityOf(one: Connected | undefined): string | undefined {
  return one?.process === undefined ? one?.identity : `${one.process}/${one.identity}`;
}

function runIdentityOf(one: Connected | undefined): string | undefined {
  return one?.process ?? one?.identity;
}

function createDriver(options: NativeOptions, context: DriverContext): Driver {
  const path = join(context.runDirectory, 'workers', `${options.native}.sock`);
  requireSocketPath(path);
  const log = context.log.child({ group: context.group });
  /** Open connections. A worker that connects again has answered nothing on its new connection. */
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
        // Read the process once, now, because the pid of an ended process may be reused later.
        worker.process = claimedProcess(pid);
        worker.id = freeId(name, ids());
        if (active !== undefined) connection.notify(active);
      },
      onLateAnswer: (generation, answer) =>
        context.onLateAnswer?.(worker.id ?? '', generation, judged(answer), identityOf(worker)),
      onSilence: (reason) => {
        const { id } = worker;
        if (id === undefined || active === undefined) return;
        // Report it as a missing answer: the worker is not confirmed any more, and is notified until it answers.
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
    runIdentity: async (worker) => runIdentityOf(placeOf(worker)?.[1]),
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
  // Check before the creation, because root would follow the link of another user.
  requireSafePathOrParent(path);
  durable.ensureDirectory('native.directory', path, 0o755);
}

function refuseConnection(socket: Parameters<typeof serveNativeWorker>[0], log: DriverContext['log']): void {
  log.warn({ expected: maxConnections }, 'too many native workers: a connection was refused');
  socket.destroy();
}

/** Applies the rule of deferrals to the first line of a nack. Its lines are joined to one text here. */
function judgedBy(options: NativeOptions): (answer: Answer) => Answer {
  const busy = deferralRule(options.notNow);
  const isBusy = ({ kind, text }: Answer): boolean =>
    kind === 'refused' && busy.forText(text.split(' | ')[0] ?? '');
  return (answer) => (isBusy(answer) ? notNow(answer.text) : answer);
}

/** The library retries to connect at least every 5 s. */
const comeWithinMs = 6000;

/** @returns a function with the milliseconds that are left for workers to connect, from the creation of the driver */
function timeToCome(clock: Clock): () => number {
  const endMs = clock.monotonicMs() + comeWithinMs;
  return () => Math.max(0, endMs - clock.monotonicMs());
}

/** Two workers with one name are `name` and `name#2`. A free number is reused. */
function freeId(name: string, taken: readonly string[]): string {
  if (!taken.includes(name)) return name;
  let number = 2;
  while (taken.includes(`${name}#${number}`)) number += 1;
  return `${name}#${number}`;
}

/** Time in which the library reconnects. A worker that stays disconnected for longer counts as dead. */
const reconnectGraceMs = 2000;
