// Workers that speak Writ's own protocol (docs/native-protocol.md): they connect to the agent, are notified of a
// generation, and answer ack or nack after they have tried it. Owns the group's socket and who is connected.
import { dirname, join } from 'node:path';
import type { NotNow } from '../../core/config/config.js';
import { notNowOfText } from '../../core/config/not-now-keys.js';
import { namePattern } from '../../core/names.js';
import { listenUnix, requireSocketPath, type UnixListener } from '../../platform/net/unix-socket.js';
import type { Clock } from '../../platform/time/clock.js';
import { lookUpGroup } from '../../platform/users/group-id.js';
import { notNow, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, Target } from '../contract/driver.js';
import { livenessWithin } from '../contract/liveness.js';
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
  notNow: property<NotNow>(notNowOfText),
};

type NativeOptions = OptionsOf<typeof properties, 'native'>;

export const native = driverKind({ name: 'native', properties, knowsProcess: true, create: createDriver });

function createDriver(options: NativeOptions, context: DriverContext): Driver {
  const path = join(context.runDirectory, 'workers', `${options.native}.sock`);
  requireSocketPath(path);
  const log = context.log.child({ group: context.group });
  /** Every open connection: who connects again has answered nothing yet, whatever it said over the one before. */
  const connections = new Map<NativeConnection, { readonly identity: string; id?: string }>();
  const ids = (): string[] => [...connections.values()].flatMap(({ id }) => id ?? []);
  const judged = judgedBy(options);
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
    accepted += 1;
    const worker: { readonly identity: string; id?: string } = { identity: `${beganAtMs}.${accepted}` };
    const connection = serveNativeWorker(socket, {
      clock: context.clock,
      log,
      onHello: (name) => {
        worker.id = freeId(name, ids());
        if (active !== undefined) connection.notify(active);
      },
      onLateAnswer: (generation, answer) =>
        context.onLateAnswer?.(worker.id ?? '', generation, judged(answer), worker.identity),
      onSilence: (reason) => {
        const { id, identity } = worker;
        if (id === undefined || active === undefined) return;
        // As an answer that was not given: its proof is over, and it is notified again until it answers.
        context.onLateAnswer?.(id, active.generation, unreachable(reason), identity);
      },
      onClose: () => connections.delete(connection),
    });
    connections.set(connection, worker);
  };

  const connectionOf = (worker: string): NativeConnection | undefined =>
    [...connections].find(([, { id }]) => id === worker)?.[0];

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
    members: async () => ids().sort(),
    reset: async (worker, reset) => {
      return judged((await connectionOf(worker)?.ask(reset)) ?? unreachable('not connected'));
    },
    keepsProcess: 'yes',
    mayComeForMs: timeToCome(context.clock),
    identity: async (worker) => [...connections.values()].find(({ id }) => id === worker)?.identity,
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
