// Daemons that re-read their policy on a signal, found by their pid files. A signal has no answer: nothing here
// confirms, but a master process that replaces its children, as nginx does, where the user asks for that proof.
// Never signals a process that cannot be the one the pid file means.
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { childrenOf, type ProcessInfo, sendSignal } from '../../platform/process/processes.js';
import { confirmed, told, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, DriverKind, ResetOptions } from '../contract/driver.js';
import { daemonIdentity, daemonLiveness, daemonPid, findDaemon } from '../shared/pid-file.js';
import { watchReplacement } from '../shared/replaced-children.js';
import { isGlob, listByGlob, pathGlobPattern } from '../shared/socket-set.js';

interface SignalOptions {
  readonly signal: 'HUP' | 'USR1' | 'USR2' | 'WINCH';
  readonly pidFile: string;
  readonly proof?: 'children';
}

export const signal: DriverKind = {
  name: 'signal',
  properties: {
    // Signals that end a process by convention are no way to hand it a policy.
    signal: {
      type: 'string',
      enum: ['HUP', 'USR1', 'USR2', 'WINCH'],
      description: 'HUP, USR1, USR2 or WINCH',
    },
    pidFile: {
      type: 'string',
      pattern: pathGlobPattern,
      maxLength: 4096,
      description:
        'an absolute path of a pid file, or a glob with wildcards in its last part only, as /run/named/named.pid',
    },
    proof: {
      type: 'string',
      enum: ['children'],
      description: 'children (the daemon replaces all its child processes when it reloads, as nginx does)',
    },
  },
  required: ['pidFile'],
  create: (options, context) => createSignalDriver(options as unknown as SignalOptions, context),
};

function createSignalDriver(options: SignalOptions, context: DriverContext): Driver {
  const { pidFile } = options;
  const seen = new Map<string, ProcessInfo>();
  const fileOf = (worker: string): string => join(dirname(pidFile), basename(worker));
  return {
    verdictClass: options.proof === undefined ? 'silent' : 'true',
    members: async () => {
      const workers = isGlob(pidFile) ? await listByGlob(pidFile, 'file') : literalMember(pidFile);
      seen.clear();
      for (const worker of workers) {
        const daemon = findDaemon(fileOf(worker));
        if (daemon.kind === 'found') seen.set(worker, daemon.process);
      }
      return workers;
    },
    reset: async (worker, reset) => {
      const found = daemonToTell(fileOf(worker), seen.get(worker));
      return typeof found === 'string' ? unreachable(found) : tell(options, found, reset, context);
    },
    liveness: async (worker) => daemonLiveness(fileOf(worker)),
    identity: async (worker) => daemonIdentity(fileOf(worker)),
    pid: async (worker) => daemonPid(fileOf(worker)),
  };
}

function literalMember(pidFile: string): readonly string[] {
  return existsSync(pidFile) ? [basename(pidFile)] : [];
}

/** @returns the process to signal, or in words why there is none */
function daemonToTell(path: string, seen: ProcessInfo | undefined): ProcessInfo | string {
  const daemon = findDaemon(path);
  if (daemon.kind !== 'found') return daemon.reason;
  const { pid, startTicks } = daemon.process;
  const isReused = seen?.pid === pid && seen.startTicks !== startTicks;
  return isReused ? `process ${pid} ended and another process has its pid` : daemon.process;
}

async function tell(
  options: SignalOptions,
  daemon: ProcessInfo,
  { timeoutMs, signal: abort }: ResetOptions,
  { clock }: DriverContext,
): Promise<Answer> {
  const before = options.proof === undefined ? [] : childrenOf(daemon.pid);
  const { pid } = daemon;
  const errno = sendSignal(pid, `SIG${options.signal}`);
  if (errno !== undefined) return unreachable(`process ${pid} cannot be signalled: ${errno}`);
  const sent = `SIG${options.signal} sent to process ${pid}`;
  if (options.proof === undefined) return told(sent);
  if (before.length === 0) return told(`${sent}, which had no children that it could replace`);
  const watching = { timeoutMs, clock, ...(abort === undefined ? {} : { signal: abort }) };
  const replacement = await watchReplacement(daemon, before, watching);
  // A master that is slow and one that refuses look alike: silence, never a no.
  switch (replacement.kind) {
    case 'replaced':
      return confirmed(`${sent}, which replaced its ${replacement.count} children`);
    case 'kept':
      return unreachable(
        `${sent}: ${replacement.left} of its ${replacement.count} children still serve as before`,
      );
    case 'died':
      return unreachable(`${sent}, which died`);
  }
}
