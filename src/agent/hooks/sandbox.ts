// Tries whether commands can be confined on this host, and decides whether they may run without a sandbox. A working sandbox is
// kept; a failed one is tried again at the next command, because the operator may have installed it by then.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { SandboxMode } from '../../core/config/config.js';
import { defaultHookSandbox } from '../../core/config/hook-sandbox.js';
import { isWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { SandboxStatus } from '../../core/status/status.js';
import { type BoxPrograms, runBoxed } from '../../platform/process/bubblewrap.js';
import { type ControlGroups, findControlGroups } from '../../platform/process/control-group.js';
import { readProcText } from '../../platform/process/proc-files.js';
import { readProcessLimits } from '../../platform/process/process-limits.js';
import { defaultPath } from '../../platform/process/run-command.js';
import { type SystemCallFilters, systemCallFilters } from '../../platform/process/system-call-filter.js';
import type { Logger } from '../../platform/telemetry/log.js';
import { resolveGroup } from '../../platform/users/group-id.js';
import type { Host, Sandbox, SandboxCapabilities } from '../state/host.js';
import { boxOf } from './confine.js';
import type { HookSandbox } from './hook.js';
import { findNamespaceHint } from './sandbox-rules.js';

export interface SandboxOptions {
  readonly mode: SandboxMode;
  readonly log: Logger;
  /** The directories to search for its programs, as in PATH. */
  readonly searchPath?: string;
  readonly findGroups?: () => Promise<ControlGroups | undefined>;
  /** As in findNamespaceHint; undefined: reads the settings of this kernel. */
  readonly readSetting?: (path: string) => string | undefined;
  /** As `process.arch`. */
  readonly machine?: string;
}

/** Does not try the sandbox before the first `open` or `retry`. */
export function createSandbox(options: SandboxOptions): Sandbox {
  const { mode, log, searchPath = defaultPath, findGroups = findControlGroups } = options;
  const { machine = process.arch, readSetting = readKernelSetting } = options;
  let found: SandboxCapabilities | undefined;
  let hasWorked = false;
  let mustFilter = false;
  let status: SandboxStatus = { mode, state: mode === 'off' ? 'off' : 'unknown' };
  const search = async (): Promise<SandboxCapabilities | undefined> => {
    const filter = systemCallFilters(machine);
    const result = await findCapabilities({ searchPath, findGroups, filter, mustFilter });
    const before = status.state;
    // An attacker who makes a trial fail, for example by using up its resources, must not get a command out of its sandbox.
    const isNeeded = mode === 'required' || hasWorked;
    status =
      'isCertain' in result
        ? failedStatus(result, { mode, isNeeded, readSetting })
        : activeStatus(mode, result);
    if (before !== status.state) log.info({ sandbox: status }, 'sandbox');
    if ('isCertain' in result) {
      if (status.withoutIt === 'refused') throw sandboxFailureError(result, status.hint);
      return undefined;
    }
    hasWorked = true;
    mustFilter ||= result.systemCalls !== undefined;
    found = result;
    return found;
  };
  return {
    status: () => status,
    open: async () => (mode === 'off' ? undefined : (found ?? (await search()))),
    forget: () => {
      found = undefined;
    },
    retry: async () => {
      if (mode === 'off') return;
      // Try the known capabilities first: a full search queries control groups again, and would lose them if systemd is busy.
      if (found !== undefined && (await runTrial(found)) === undefined) return;
      found = undefined;
      await search();
    },
  };
}

interface SandboxFailure {
  readonly state: 'missing' | 'unusable';
  readonly reason: string;
  /** False if the trial did not end by itself, as on a busy host, which may have a sandbox. */
  readonly isCertain: boolean;
}

function sandboxFailureError({ state, reason }: SandboxFailure, hint: string | undefined): WritError {
  const code = state === 'missing' ? 'SANDBOX_MISSING' : 'SANDBOX_BROKEN';
  return new WritError(code, `no command can be confined: ${reason}`, {
    facts: { reason },
    ...given({ hint }),
  });
}

interface FailedStatusOptions extends Required<Pick<SandboxOptions, 'mode' | 'readSetting'>> {
  /** True if the sandbox is required, or worked in this process before. */
  readonly isNeeded: boolean;
}

function failedStatus(
  { state, reason, isCertain }: SandboxFailure,
  { mode, isNeeded, readSetting }: FailedStatusOptions,
): SandboxStatus {
  const withoutIt = isNeeded || !isCertain ? 'refused' : 'unconfined';
  const hint = state === 'unusable' ? findNamespaceHint(readSetting) : undefined;
  return { mode, state, reason, withoutIt, ...given({ hint }) };
}

const maxSettingBytes = 64;

/** @returns undefined for a setting that this kernel does not have */
function readKernelSetting(path: string): string | undefined {
  return readProcText(join('/proc/sys', path), maxSettingBytes);
}

/** Reports how each limit is enforced on this host. */
function activeStatus(
  mode: SandboxMode,
  { isRoot, userNamespace, groups, systemCalls }: SandboxCapabilities,
): SandboxStatus {
  return {
    mode,
    state: 'on',
    user: isRoot ? 'nobody' : 'agent',
    userNamespace,
    memory: groups === undefined ? 'each-process' : 'each-command',
    processes: groups !== undefined || userNamespace === 'yes' ? 'each-command' : 'each-user',
    systemCalls: systemCalls === undefined ? 'open' : 'filtered',
  };
}

interface CapabilitySearch extends Required<Pick<SandboxOptions, 'searchPath' | 'findGroups'>> {
  readonly filter: SystemCallFilters | undefined;
  /** True if the filter worked before: commands then never run without it. */
  readonly mustFilter: boolean;
}

async function findCapabilities({
  searchPath,
  findGroups,
  filter,
  mustFilter,
}: CapabilitySearch): Promise<SandboxCapabilities | SandboxFailure> {
  const programs: BoxPrograms = {
    bwrap: findProgram('bwrap', searchPath),
    prlimit: findProgram('prlimit', searchPath),
    setpriv: findProgram('setpriv', searchPath),
  };
  const missing = Object.values(programs).filter((path) => !path.startsWith('/'));
  if (missing.length > 0)
    return { state: 'missing', isCertain: true, reason: `${missing.join(', ')} not found` };
  const isRoot = process.getuid?.() === 0;
  const bare: SandboxCapabilities = { programs, isRoot, limits: readProcessLimits(), userNamespace: 'yes' };
  const filtered = { ...bare, ...given({ systemCalls: filter }) };
  const trial = await runTrial(filtered);
  // Drop the filter only if it is the cause of the failure, and keep the namespaces; the status shows it. An attacker who makes a
  // trial fail in another way must not remove the filter.
  const dropsFilter = isFilterFailure(trial) && !mustFilter;
  const [whole, failure] = dropsFilter ? [bare, await runTrial(bare)] : [filtered, trial];
  // An agent of root can confine without a user namespace: the command then sees other users, and its processes count with theirs.
  const capabilities: SandboxCapabilities = failure === undefined ? whole : { ...whole, userNamespace: 'no' };
  if (failure !== undefined && (!isRoot || (await runTrial(capabilities)) !== undefined)) return failure;
  const groups = await findGroups();
  return groups === undefined ? capabilities : { ...capabilities, groups };
}

/** Messages of bubblewrap: `prctl(PR_SET_SECCOMP): Invalid argument` on a kernel without it, `Unknown option --seccomp`. */
function isFilterFailure(failure: SandboxFailure | undefined): boolean {
  return failure?.isCertain === true && /seccomp/i.test(failure.reason);
}

/** @returns the absolute path of a program; its name if it is not installed */
function findProgram(name: string, searchPath: string): string {
  const paths = searchPath.split(':').map((directory) => join(directory, name));
  return paths.find((path) => fs.existsSync(path)) ?? name;
}

const trialMs = 10_000;

/** Runs `true` in the sandbox. @returns undefined if it succeeded */
async function runTrial(capabilities: SandboxCapabilities): Promise<SandboxFailure | undefined> {
  const fail = (reason: string, isCertain = true): SandboxFailure => ({
    state: 'unusable',
    reason,
    isCertain,
  });
  try {
    const box = boxOf(capabilities, defaultHookSandbox, { mounts: [], directory: '/' });
    const { programs } = capabilities;
    const end = await runBoxed({ argv: ['true'], box, programs, timeoutMs: trialMs, maxOutputBytes: 1000 });
    if (end.kind === 'not-boxed') return fail(end.reason);
    if (end.kind !== 'exited') return fail(`a test command failed: ${end.kind}`, false);
    return end.exitCode === 0 ? undefined : fail(`a test command failed: exit ${end.exitCode}`);
  } catch (error) {
    return fail(error instanceof Error ? error.message : String(error));
  }
}

/** @returns the sandbox options of a host, without the view of the policy */
export function confineOn({
  sandbox,
  paths,
  config,
}: Pick<Host, 'sandbox' | 'paths' | 'config'>): Omit<HookSandbox, 'view' | 'places'> {
  const readers = config.bundles.flatMap(({ group }) => (group === undefined ? [] : groupsNamed(group)));
  return { sandbox, paths, readers, secrets: secretsOf(config) };
}

function secretsOf({ workers, socket, metrics }: Host['config']): string[] {
  const files = workers.map(({ reset }) => reset?.options['authorizationFile']);
  const answers = metrics?.kind === 'unix' ? [socket, metrics.path] : [socket];
  return [...new Set([...files.filter((file) => typeof file === 'string'), ...answers])];
}

/** Returns no group for a name that does not exist, because staging refuses it. */
function groupsNamed(group: string | number): number[] {
  try {
    return [resolveGroup(group)];
  } catch (error) {
    if (isWritError(error)) return [];
    throw error;
  }
}

/**
 * Tries the sandbox before a command needs it, so that the status shows the result. Logs a failure and does not throw it.
 * @param options.isRepeated tries a sandbox that worked before once more
 */
export async function trySandbox(
  { sandbox, log }: Pick<Host, 'sandbox' | 'log'>,
  { isRepeated }: { readonly isRepeated: boolean } = { isRepeated: false },
): Promise<void> {
  try {
    if (isRepeated) await sandbox.retry();
    else await sandbox.open();
  } catch (error) {
    log.warn({ err: error }, 'no command can be confined');
  }
}
