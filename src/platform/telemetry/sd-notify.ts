// The door to the service manager: sd_notify by the systemd-notify program, for Node has no datagram socket of the
// unix family. Owns the order and the form of what is said; never what is true. Without NOTIFY_SOCKET there is no door.
// To notify is no outcome: what cannot be sent is one warning in the log.

import { given } from '../../core/given.js';
import { runCommand } from '../process/run-command.js';
import type { Logger } from './log.js';

/** One assignment, as `READY=1`. */
export type NotifyLine = `${string}=${string | number}`;

export interface Notifier {
  /**
   * Sends all lines in one datagram, after everything that was sent before. Never rejects.
   * @param lines the first word counts: some receivers look at nothing behind a READY=1 that is not in front
   */
  notify(lines: readonly NotifyLine[]): Promise<'sent' | 'failed'>;
  /** Resolves when all that was sent is out. */
  idle(): Promise<void>;
  /** Within this time it wants to hear of us again and again; left out when nobody watches. */
  readonly watchdogMs?: number;
}

export interface NotifierOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  /** Of this process. */
  readonly pid: number;
  /** Where the program is looked for; default: the system's places. */
  readonly path?: string;
}

const deadlineMs = 10_000;

/** @returns undefined when no service manager wants to hear of this process */
export function openNotifier(options: NotifierOptions): Notifier | undefined {
  const socket = options.env['NOTIFY_SOCKET'];
  if (socket === undefined || socket === '') return undefined;
  const program = createProgram(socket, options);
  let tail: Promise<unknown> = Promise.resolve();
  return {
    notify: (lines) => {
      const mine = tail.then(() => program(lines.map(oneLine)));
      tail = mine;
      return mine;
    },
    idle: async () => {
      for (let last: unknown; last !== tail; ) {
        last = tail;
        await tail;
      }
    },
    ...given({ watchdogMs: watchdogMs(options.env, options.pid) }),
  };
}

type Program = (lines: readonly string[]) => Promise<'sent' | 'failed'>;

function createProgram(socket: string, { log, path }: NotifierOptions): Program {
  const flags = waitsForReader(socket) ? [] : ['--no-block'];
  const env = { NOTIFY_SOCKET: socket, ...given({ PATH: path }) };
  let state: 'works' | 'fails' | 'missing' = 'works';
  return async (lines) => {
    if (state === 'missing') return 'failed';
    const argv = ['systemd-notify', ...flags, ...lines] as const;
    const result = await runCommand({ argv, env, timeoutMs: deadlineMs, maxOutputBytes: 1000 });
    if (result.kind === 'exited' && result.exitCode === 0) {
      state = 'works';
      return 'sent';
    }
    const isMissing = result.kind === 'not-started' && result.reason.includes('ENOENT');
    if (state === 'works')
      log.warn({ result }, 'the service manager could not be notified; it knows less than status');
    state = isMissing ? 'missing' : 'fails';
    return 'failed';
  };
}

/**
 * systemd looks the sender up by its pid: a helper that is gone by then belongs to no unit, so it has to wait for its
 * barrier to be read. Other receivers, as supervisors and container engines, read no barrier: it would wait in vain.
 */
export function waitsForReader(socket: string): boolean {
  return /^\/run\/(?:user\/\d+\/)?systemd\/notify$/.test(socket);
}

/** @returns milliseconds, or undefined when no watchdog watches this process */
export function watchdogMs(env: NotifierOptions['env'], pid: number): number | undefined {
  const { WATCHDOG_USEC: usec, WATCHDOG_PID: watched } = env;
  if (usec === undefined || !/^[1-9][0-9]{0,15}$/.test(usec)) return undefined;
  return watched === undefined || watched === String(pid) ? Number(usec) / 1000 : undefined;
}

/** A line break in a text would be another assignment. */
function oneLine(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return line.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ').slice(0, 500);
}

/** CLOCK_MONOTONIC in microseconds: by it a reload is told apart from the one before. */
export function monotonicUsec(): bigint {
  return process.hrtime.bigint() / 1000n;
}
