// Judgements of `writ doctor` about the host itself: configuration, room and safety of its directories, the agent, the
// sandbox. Facts in, one finding out; pure.

import type { SandboxMode } from '../../core/config/config.js';
import type { ConfigMistake } from '../../core/config/config-errors.js';
import { mistakeLine } from '../../core/config/config-errors.js';
import type { FreeSpace } from '../../core/release/disk-space.js';
import { sizeText } from '../../core/size-text.js';
import type { Judged } from '../../core/status/doctor.js';
import type { SandboxStatus } from '../../core/status/status.js';

export interface ConfigurationFacts {
  readonly path: string;
  readonly warnings: readonly ConfigMistake[];
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string };
}

export function judgeConfiguration({ path, warnings, error }: ConfigurationFacts): Judged {
  if (error !== undefined) {
    const [head = '', first, ...more] = error.message.split('\n').map((line) => line.trim());
    const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
    const text = first === undefined ? head : `${head} ${first}${rest}`;
    return { state: 'FAIL', text, next: 'writ config show', code: error.code };
  }
  const [warning] = warnings;
  if (warning === undefined) return { state: 'ok', text: `${path}: no mistake` };
  const count = warnings.length === 1 ? '' : ` (${warnings.length} in all)`;
  return { state: 'warn', text: `${path}:${mistakeLine(warning)}${count}`, next: 'writ config show' };
}

export interface StateFacts {
  readonly path: string;
  readonly presence: 'there' | 'absent';
  /** Why its directories are not safe, or cannot be swapped in. */
  readonly unsafe?: { readonly code: string; readonly message: string; readonly hint: string };
  /** What forbids writing here, as EROFS; left out where nothing does. */
  readonly notWritable?: string;
  readonly free?: FreeSpace;
  /** Bytes that one release may need: its archive, twice. */
  readonly needBytes: number;
  /** How `sync -f` ended there, when it did not end well. */
  readonly flushFailed?: string;
}

const leastFreeBytes = 64_000_000;
const leastFreeInodes = 2000;

export function judgeState(facts: StateFacts): Judged {
  const { path, presence, unsafe, notWritable, flushFailed, free } = facts;
  if (unsafe !== undefined)
    return { state: 'FAIL', text: unsafe.message, next: unsafe.hint, code: unsafe.code };
  if (notWritable === 'EACCES' || notWritable === 'EPERM')
    return { state: 'warn', text: `${path} cannot be written by this user`, next: 'sudo writ doctor' };
  if (notWritable !== undefined)
    return {
      state: 'FAIL',
      text: `${path} cannot be written: ${notWritable}`,
      next: 'look into dmesg; mount it rw',
    };
  if (flushFailed !== undefined)
    return { state: 'FAIL', text: `${path} cannot be flushed: ${flushFailed}`, next: 'look into dmesg' };
  const room = free === undefined ? undefined : judgeRoom(free, facts);
  if (room !== undefined) return room;
  const left = free === undefined ? '' : `, ${sizeText(free.bytes)} free`;
  if (presence === 'absent') return { state: 'ok', text: `${path}: made at the first start${left}` };
  return { state: 'ok', text: `${path}: one file system, flushing works${left}` };
}

function judgeRoom(free: FreeSpace, { path, needBytes }: StateFacts): Judged | undefined {
  const next = `df -h ${path}; df -i ${path}`;
  const inodesShort = free.totalInodes > 0 && free.inodes < leastFreeInodes;
  if (free.bytes < leastFreeBytes || inodesShort) {
    const what = inodesShort ? `${free.inodes} inodes` : sizeText(free.bytes);
    return { state: 'FAIL', text: `${path}: ${what} free, too little for any release`, next };
  }
  if (free.bytes >= needBytes) return undefined;
  const text = `${path}: ${sizeText(free.bytes)} free, the largest release that is allowed needs ${sizeText(needBytes)}`;
  return { state: 'warn', text, next };
}

export interface AgentFactsSeen {
  readonly socket: string;
  /** As status says it; left out when nobody answers. */
  readonly state?: 'init' | 'run' | 'shutdown' | 'stop';
  /** Why the agent that runs did not answer. */
  readonly error?: { readonly code: string; readonly message: string; readonly hint: string };
  /** Who holds the lock, for people; left out when nobody does. */
  readonly lockHolder?: string;
  readonly versions: { readonly agent?: string; readonly own: string };
}

export function judgeAgent({ socket, state, error, lockHolder, versions }: AgentFactsSeen): Judged {
  if (error !== undefined) return { state: 'FAIL', text: error.message, next: error.hint, code: error.code };
  if (state === undefined || state === 'stop') {
    if (lockHolder !== undefined)
      return {
        state: 'warn',
        text: `no agent answers on ${socket}; the lock is held by ${lockHolder}`,
        next: 'writ status',
      };
    const next = 'sudo systemctl start writ-agent';
    return { state: 'warn', text: 'no agent runs: nothing is pulled by itself', next };
  }
  const { agent, own } = versions;
  if (agent !== undefined && agent !== own) {
    const text = `runs with version ${agent}, this program is ${own}`;
    return { state: 'warn', text, next: 'sudo systemctl restart writ-agent' };
  }
  return { state: 'ok', text: `answers on ${socket}, state ${state}` };
}

export interface SandboxFacts {
  readonly mode: SandboxMode;
  /** Commands that would run in it: checks, canaries, loaders, probes. */
  readonly commands: number;
  /** What a trial has shown; left out where there was none. */
  readonly seen?: Omit<SandboxStatus, 'mode'>;
}

export function judgeSandbox({ mode, commands, seen }: SandboxFacts): Judged {
  if (mode === 'off') {
    if (commands === 0) return { state: 'ok', text: 'off: nothing needs it' };
    const text = `off: ${commandsText(commands)} with the rights of the agent`;
    return { state: 'warn', text, next: 'set `sandbox: auto` or `required`' };
  }
  if (seen?.state === 'on') {
    const { user, userNamespace } = seen;
    const who = user === 'agent' ? 'this user' : user;
    return { state: 'ok', text: `a trial was confined as ${who}, user namespace: ${userNamespace}` };
  }
  // Without a command there is nothing that could not run.
  const bad = commands === 0 ? 'skip' : mode === 'required' ? 'FAIL' : 'warn';
  const effect = mode === 'required' ? 'cannot run' : 'run without a sandbox';
  const what = commands === 0 ? 'nothing needs it yet' : `${commandsText(commands)} that ${effect}`;
  const reason = seen?.reason ?? 'it was not tried';
  if (seen?.state === 'missing')
    return { state: bad, text: `${reason}: ${what}`, next: 'apt-get install bubblewrap util-linux' };
  return { state: bad, text: `no command can be confined (${reason}): ${what}`, next: 'see docs/sandbox.md' };
}

function commandsText(count: number): string {
  return count === 1 ? '1 command' : `${count} commands`;
}
