// Whether commands can be confined on this host, found out by trying, what is to happen where they cannot, and what the
// host says to every command in the sandbox. Keeps what it found; where the sandbox is not there it looks again, for
// somebody may have installed it meanwhile.
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
import { lookUpGroup } from '../../platform/users/group-id.js';
import type { Host, Sandbox, SandboxCapabilities } from '../state/host.js';
import { boxOf } from './confine.js';
import type { HookSandbox } from './hook.js';
import { findNamespaceHint } from './sandbox-rules.js';

export interface SandboxOptions {
  readonly mode: SandboxMode;
  readonly log: Logger;
  /** Where its programs are looked for, as a PATH. */
  readonly searchPath?: string;
  readonly findGroups?: () => Promise<ControlGroups | undefined>;
  /** As findNamespaceHint has it; left out: of this kernel. */
  readonly readSetting?: (path: string) => string | undefined;
  /** As `process.arch`. */
  readonly machine?: string;
}

/** Nothing is looked for before it is asked. */
export function createSandbox(options: SandboxOptions): Sandbox {
  const { mode, log, searchPath = defaultPath, findGroups = findControlGroups } = options;
  const { machine = process.arch, readSetting = readKernelSetting } = options;
  let found: SandboxCapabilities | undefined;
  let hasWorked = false;
  let mustFilter = false;
  let status: SandboxStatus = { mode, state: mode === 'off' ? 'off' : 'unknown' };
  const look = async (): Promise<SandboxCapabilities | undefined> => {
    const filter = systemCallFilters(machine);
    const result = await findMeans({ searchPath, findGroups, filter, mustFilter });
    const before = status.state;
    // Who can make a trial fail, as by using up what it needs, must not get a command out of its sandbox by that.
    const isNeeded = mode === 'required' || hasWorked;
    status = 'certain' in result ? afterLack(result, { mode, isNeeded, readSetting }) : inForce(mode, result);
    if (before !== status.state) log.info({ sandbox: status }, 'sandbox');
    if ('certain' in result) {
      if (status.withoutIt === 'refused') throw lackError(result, status.hint);
      return undefined;
    }
    hasWorked = true;
    mustFilter ||= result.systemCalls !== undefined;
    found = result;
    return found;
  };
  return {
    status: () => status,
    open: async () => (mode === 'off' ? undefined : (found ?? (await look()))),
    forget: () => {
      found = undefined;
    },
    retry: async () => {
      if (mode === 'off') return;
      // A whole look asks for control groups anew, and a busy systemd that answers late would lose them.
      if (found !== undefined && (await tryOnce(found)) === undefined) return;
      found = undefined;
      await look();
    },
  };
}

interface Lack {
  readonly state: 'missing' | 'unusable';
  readonly reason: string;
  /** `no`: a trial had no end of its own; a busy host is no host without a sandbox. */
  readonly certain: 'yes' | 'no';
}

function lackError({ state, reason }: Lack, hint: string | undefined): WritError {
  const code = state === 'missing' ? 'SANDBOX_MISSING' : 'SANDBOX_BROKEN';
  return new WritError(code, `no command can be confined: ${reason}`, {
    facts: { reason },
    ...given({ hint }),
  });
}

interface Afterwards extends Required<Pick<SandboxOptions, 'mode' | 'readSetting'>> {
  /** It is required, or worked in this process before. */
  readonly isNeeded: boolean;
}

function afterLack(
  { state, reason, certain }: Lack,
  { mode, isNeeded, readSetting }: Afterwards,
): SandboxStatus {
  const withoutIt = isNeeded || certain === 'no' ? 'refused' : 'unconfined';
  const hint = state === 'unusable' ? findNamespaceHint(readSetting) : undefined;
  return { mode, state, reason, withoutIt, ...given({ hint }) };
}

const maxSettingBytes = 64;

/** @returns undefined for a setting that this kernel does not have */
function readKernelSetting(path: string): string | undefined {
  return readProcText(join('/proc/sys', path), maxSettingBytes);
}

/** How each bound is really kept, for people who have to know. */
function inForce(
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

interface Search extends Required<Pick<SandboxOptions, 'searchPath' | 'findGroups'>> {
  readonly filter: SystemCallFilters | undefined;
  /** It worked before: then it is never done without. */
  readonly mustFilter: boolean;
}

async function findMeans({
  searchPath,
  findGroups,
  filter,
  mustFilter,
}: Search): Promise<SandboxCapabilities | Lack> {
  const programs: BoxPrograms = {
    bwrap: findProgram('bwrap', searchPath),
    prlimit: findProgram('prlimit', searchPath),
    setpriv: findProgram('setpriv', searchPath),
  };
  const missing = Object.values(programs).filter((path) => !path.startsWith('/'));
  if (missing.length > 0)
    return { state: 'missing', certain: 'yes', reason: `${missing.join(', ')} not found` };
  const isRoot = process.getuid?.() === 0;
  const bare: SandboxCapabilities = { programs, isRoot, limits: readProcessLimits(), userNamespace: 'yes' };
  const filtered = { ...bare, ...given({ systemCalls: filter }) };
  const trial = await tryOnce(filtered);
  // A filter that cannot be had leaves the namespaces, and is said. Any other lack is none of the filter: who can make a trial
  // fail must not take it away.
  const goesWithout = isOfFilter(trial) && !mustFilter;
  const [whole, lack] = goesWithout ? [bare, await tryOnce(bare)] : [filtered, trial];
  // Root can confine a command without: it sees other users then, and its processes are counted with theirs.
  const means: SandboxCapabilities = lack === undefined ? whole : { ...whole, userNamespace: 'no' };
  if (lack !== undefined && (!isRoot || (await tryOnce(means)) !== undefined)) return lack;
  const groups = await findGroups();
  return groups === undefined ? means : { ...means, groups };
}

/** bubblewrap's words: `prctl(PR_SET_SECCOMP): Invalid argument` of a kernel without it, `Unknown option --seccomp`. */
function isOfFilter(lack: Lack | undefined): boolean {
  return lack?.certain === 'yes' && /seccomp/i.test(lack.reason);
}

/** @returns its absolute path, or its name where it is not there */
function findProgram(name: string, searchPath: string): string {
  const paths = searchPath.split(':').map((directory) => join(directory, name));
  return paths.find((path) => fs.existsSync(path)) ?? name;
}

const trialMs = 10_000;

/** @returns why a command that does nothing could not be run, or undefined */
async function tryOnce(means: SandboxCapabilities): Promise<Lack | undefined> {
  const lack = (reason: string, certain: Lack['certain']): Lack => ({ state: 'unusable', reason, certain });
  try {
    const box = boxOf(means, defaultHookSandbox, { mounts: [], directory: '/' });
    const { programs } = means;
    const end = await runBoxed({ argv: ['true'], box, programs, timeoutMs: trialMs, maxOutputBytes: 1000 });
    if (end.kind === 'not-boxed') return lack(end.reason, 'yes');
    if (end.kind !== 'exited') return lack(`a test command failed: ${end.kind}`, 'no');
    return end.exitCode === 0 ? undefined : lack(`a test command failed: exit ${end.exitCode}`, 'yes');
  } catch (error) {
    return lack(error instanceof Error ? error.message : String(error), 'yes');
  }
}

/** @returns all that a confined command needs but its view of policy */
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

/** A group that does not exist is staging's to refuse. */
function groupsNamed(group: string | number): number[] {
  try {
    return [lookUpGroup(group)];
  } catch (error) {
    if (isWritError(error)) return [];
    throw error;
  }
}

/**
 * So that status tells from the first. Nothing waits for one: what is active was judged before it.
 * @param known.tried `again`: what was found before is tried too
 */
export async function lookForSandbox(
  { sandbox, log }: Pick<Host, 'sandbox' | 'log'>,
  known: { readonly tried: 'once' | 'again' } = { tried: 'once' },
): Promise<void> {
  try {
    if (known.tried === 'again') await sandbox.retry();
    else await sandbox.open();
  } catch (error) {
    log.warn({ err: error }, 'no command can be confined');
  }
}
