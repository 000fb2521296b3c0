// Notifies the service manager (sd_notify) by the program systemd-notify, because Node has no Unix datagram sockets. Owns order and
// form of the messages; the caller decides their content. Does nothing without NOTIFY_SOCKET. A failure never changes an outcome: it
// is logged once.

import { given } from '../../core/given.js';
import { runCommand } from '../process/run-command.js';
import type { Logger } from './log.js';

/** One assignment, as `READY=1`. */
export type NotifyLine = `${string}=${string | number}`;

export interface Notifier {
  /**
   * Sends all lines in one datagram, after everything that was sent before. Never rejects.
   * @param lines READY=1 first, because some receivers ignore it in any other place
   */
  notify(lines: readonly NotifyLine[]): Promise<'sent' | 'failed'>;
  /** Resolves when every message is sent. */
  idle(): Promise<void>;
  /** Longest time between two watchdog pings; undefined without a watchdog. */
  readonly watchdogMs?: number;
}

export interface NotifierOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  /** Process id of this process. */
  readonly pid: number;
  /** Search path for the program; undefined: the default of the system. */
  readonly path?: string;
}

const deadlineMs = 10_000;

/** @returns undefined without a service manager */
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
 * systemd finds the unit of the sender by its pid, so that the helper must not exit before its message is read. systemd confirms
 * this by a barrier. Other receivers, as supervisors and container engines, ignore the barrier, so the helper would wait until its
 * timeout.
 * @returns whether the receiver reads the barrier
 */
export function waitsForReader(socket: string): boolean {
  return /^\/run\/(?:user\/\d+\/)?systemd\/notify$/.test(socket);
}

/** @returns milliseconds; undefined without a watchdog for this process */
export function watchdogMs(env: NotifierOptions['env'], pid: number): number | undefined {
  const { WATCHDOG_USEC: usec, WATCHDOG_PID: watched } = env;
  if (usec === undefined || !/^[1-9][0-9]{0,15}$/.test(usec)) return undefined;
  return watched === undefined || watched === String(pid) ? Number(usec) / 1000 : undefined;
}

/** Replaces line breaks, because each line is an assignment. */
function oneLine(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression matches control characters
  return line.replaceAll(/[\u0000-\u001f\u007f]+/g, ' ').slice(0, 500);
}

/** CLOCK_MONOTONIC in microseconds, by which systemd distinguishes two reloads. */
export function monotonicUsec(): bigint {
  return process.hrtime.bigint() / 1000n;
}
