// Reads `writ status`, `writ history` and `writ refusals` from the disk, for a host without a running agent. Takes no lock, changes
// nothing, and loads no module that uses the network.

import * as fs from 'node:fs';
import type { Problem } from '../../core/cycle/cycle-report.js';
import { errorCodes } from '../../core/error-codes.js';
import { isSystemError } from '../../core/errors.js';
import { withoutUndefined } from '../../core/given.js';
import type {
  AgentState,
  HistoryEntry,
  RefusalsResult,
  StatusReport,
} from '../../core/protocol/control-protocol.js';
import { recallFiles } from '../../core/tuf/trusted-set.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { findLockHolder } from '../../platform/disk/find-lock-holder.js';
import { requireSafePathOrParent, trustedOwners } from '../../platform/disk/safe-path.js';
import { lstatIfPresent } from '../../platform/read-file.js';
import { type Clock, systemClock } from '../../platform/time/clock.js';
import { knownTarget, recallRoles } from '../../trust/find-target.js';
import { rememberVerdicts } from '../../trust/release-verdicts.js';
import { openTrustStore } from '../../trust/store/trust-store.js';
import { describeTrust } from '../../trust/trust-report.js';
import { agentPlaces } from '../config/config-file.js';
import { loadConfig } from '../config/load-config.js';
import { heldNow } from '../cycle/collector.js';
import { contactIn } from '../freshness/contact-memory.js';
import { readHistory, requireHistory } from '../job/history.js';
import { readObservation } from '../report/bake-status.js';
import { listRefusals } from '../report/refusal-status.js';
import type { HostView } from '../report/status-facts.js';
import { readStatusFile } from '../report/status-file.js';
import { statusReport } from '../report/status-report.js';
import { openLedger } from '../state/ledger-file.js';
import { hostPaths } from '../state/paths.js';
import { openRefusals } from '../state/refusals-file.js';
import { findVanished } from '../state-mark/state-mark.js';

export interface OfflineOptions {
  readonly configPath: string;
  readonly version: string;
  /** Read after each file, because another process may write a later time between two reads. */
  readonly clock: Pick<Clock, 'nowMs'>;
}

export interface OfflineStatusOptions extends OfflineOptions {
  /** `run` if status.json is from an agent that may run. Undefined: no agent runs. */
  readonly agent?: AgentState;
}

export interface AgedStatusReport {
  readonly report: StatusReport;
  /** The time since the report was written; negative after the clock was set back. */
  readonly ageMs: number;
}

/**
 * Reads status.json and its age.
 * @returns undefined if there is none, or this user may not read it
 * @throws WritError CONFIG_*; PATH_UNSAFE if another user could have written the file
 */
export function readAgedStatusReport({
  configPath,
  clock,
}: Pick<OfflineOptions, 'configPath' | 'clock'>): AgedStatusReport | undefined {
  const { state, run, ...paths } = hostPaths(agentPlaces(configPath));
  // The file is trusted like the response of a socket, so its path must be safe.
  requireSafePathOrParent(run, trustedOwners(state));
  const report = readStatusFile(paths);
  return report && { report, ageMs: clock.nowMs() - report.atMs };
}

interface StateOptions extends Pick<OfflineOptions, 'configPath'> {
  /** The time at which status.json was written, in epoch milliseconds; undefined without that file. */
  readonly writtenAtMs?: number | undefined;
}

/**
 * Determines whether this user can read the state directory, and whether a process holds its lock. A host without a ledger can be
 * read by all users.
 * @returns `denied`: not readable; `locked`: a process holds the lock; `starting`: an agent that has not written status.json yet
 * @throws WritError CONFIG_*
 */
export async function readStateAccess({
  configPath,
  writtenAtMs,
}: StateOptions): Promise<'denied' | 'free' | 'locked' | 'starting'> {
  const { state, ledger, lock } = hostPaths(agentPlaces(configPath));
  if ([state, ledger].some((path) => readErrorOf(path) === 'EACCES')) return 'denied';
  if (!fs.existsSync(lock)) return 'free';
  const { alive, what, sinceMs = 0 } = await findLockHolder(lock);
  if (alive !== 'yes') return 'free';
  return what === 'agent' && sinceMs > (writtenAtMs ?? sinceMs) ? 'starting' : 'locked';
}

function readErrorOf(path: string): string | undefined {
  try {
    fs.accessSync(path, fs.constants.R_OK);
    return undefined;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return error.code;
  }
}

/**
 * Creates the status report from the disk, with the last cycle, mirrors and fleet state of status.json if that exists. Writes
 * nothing.
 * @returns the report. Its `agent` is `options.agent`, or `stop` if that is left out. On a host without a first pull it has no
 *   generation. A part that cannot be read is a problem in `problems` and has its empty value
 * @throws WritError CONFIG_*; STATE_TOO_NEW or DISK_* if ledger or refusals cannot be read; STATE_DAMAGED
 */
export async function readOfflineStatus(options: OfflineStatusOptions): Promise<StatusReport> {
  const host = openHostView(options);
  const known = readStatusFile(host.paths);
  const { last, mirrors, fleet } = known ?? {};
  const kept = withoutUndefined<Pick<StatusReport, 'last' | 'mirrors' | 'fleet'>>({ last, mirrors, fleet });
  const report = statusReport(host, {
    version: options.version,
    state: options.agent ?? 'stop',
    contact: { contact: contactIn(known) },
    observation: readObservation(known, host.clock.nowMs()),
    held: await heldNow(host),
    problems: known?.problems ?? [],
  });
  return { ...report, ...kept, problems: withoutPublicDuplicates(report.problems) };
}

/** Removes problems that status.json has only as a code with its general meaning, if the disk has the same code with details. */
function withoutPublicDuplicates(problems: StatusReport['problems']): StatusReport['problems'] {
  const isPublic = ({ code, message }: Problem): boolean => message === errorCodes[code].meaning;
  const known = new Set(problems.filter((one) => !isPublic(one)).map(({ code }) => code));
  return problems.filter((one) => !isPublic(one) || !known.has(one.code));
}

/** `writ refusals` without an agent. @throws WritError CONFIG_*, STATE_DAMAGED */
export async function readOfflineRefusals(options: OfflineOptions): Promise<RefusalsResult> {
  return listRefusals(openHostView(options));
}

function openHostView({ configPath, clock }: OfflineOptions) {
  const { config } = loadConfig(configPath);
  const paths = hostPaths(config);
  const durable = createDurableFs();
  return {
    config,
    paths,
    stateMark: { findVanished: () => findVanished(paths) },
    clock: { nowMs: () => clock.nowMs(), monotonicMs: systemClock.monotonicMs },
    client: storedTrust(paths.trust, config.root),
    // A missing ledger is damage if a generation is active.
    ledger: openLedger(paths.ledger, durable, () => lstatIfPresent(paths.current) === undefined),
    refusals: openRefusals(paths.rejected, durable),
  };
}

/** The part of a repository client that reads only the trust store. */
function storedTrust(directory: string, bootstrapRoot: string): HostView['client'] {
  const store = openTrustStore({ directory, bootstrapRoot, fs: createDurableFs() });
  let set: ReturnType<typeof recallFiles> | undefined;
  // Load the files once for all releases of a report.
  const load = (): ReturnType<typeof recallFiles> => {
    set ??= recallFiles(store.loadRoot(), store.loadFiles());
    return set;
  };
  const verdicts = rememberVerdicts(store.loadDelegated);
  return {
    status: () => (store.isEmpty() ? undefined : describeTrust(recallRoles(load(), store.loadDelegated))),
    knownTarget: (bundle, channel) =>
      store.isEmpty() ? undefined : knownTarget(load(), { bundle, channel }, store.loadDelegated),
    stillVerifies: (proof) => (store.isEmpty() ? undefined : verdicts(load(), proof)),
  };
}

/** @returns entries, newest first. @throws WritError CONFIG_*, STATE_DAMAGED */
export async function readOfflineHistory(
  options: OfflineOptions & { readonly limit: number; readonly cycle?: string },
): Promise<readonly HistoryEntry[]> {
  const { config } = loadConfig(options.configPath);
  const paths = hostPaths(config);
  requireHistory(paths);
  return readHistory(paths, options);
}
