// `writ status` and `writ history` of a host without a running agent: what lies on disk. Takes no lock, changes
// nothing, and loads nothing that speaks to a network.

import * as fs from 'node:fs';
import { isSystemError } from '../../core/errors.js';
import { withoutUndefined } from '../../core/given.js';
import type { HistoryEntry, RefusalsResult, StatusReport } from '../../core/protocol/control-protocol.js';
import { stillVerifies } from '../../core/tuf/still-verifies.js';
import { recallFiles } from '../../core/tuf/trusted-set.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { systemClock } from '../../platform/time/clock.js';
import { knownTarget, recallRoles } from '../../trust/find-target.js';
import { openTrustStore } from '../../trust/store/trust-store.js';
import { describeTrust } from '../../trust/trust-report.js';
import { agentPlaces } from '../config/config-file.js';
import { loadConfig } from '../config/load-config.js';
import { heldNow } from '../cycle/collector.js';
import { contactIn } from '../freshness/contact-memory.js';
import { readHistory } from '../job/history.js';
import { listRefusals } from '../report/refusal-status.js';
import { readStatusFile } from '../report/status-file.js';
import { type HostView, statusReport } from '../report/status-report.js';
import { openLedger } from '../state/ledger-file.js';
import { hostPaths } from '../state/paths.js';
import { openRefusals } from '../state/refusals-file.js';

export interface OfflineOptions {
  readonly configPath: string;
  readonly version: string;
  readonly nowMs: number;
}

export interface LastWord {
  readonly report: StatusReport;
  /** Since it was written; less than 0 where a clock was set back. */
  readonly ageMs: number;
}

/** @returns what status.json says; undefined where there is none, or this user may not read it. @throws WritError CONFIG_* */
export function readLastWord({
  configPath,
  nowMs,
}: Pick<OfflineOptions, 'configPath' | 'nowMs'>): LastWord | undefined {
  const report = readStatusFile(hostPaths(agentPlaces(configPath)));
  return report && { report, ageMs: nowMs - report.atMs };
}

/** Whether this user can judge the host by its ledger; without one everybody can. @throws WritError CONFIG_* */
export function mayReadState({ configPath }: Pick<OfflineOptions, 'configPath'>): boolean {
  const { state, ledger } = hostPaths(agentPlaces(configPath));
  return [state, ledger].every((path) => whyNot(path) !== 'EACCES');
}

function whyNot(path: string): string | undefined {
  try {
    fs.accessSync(path, fs.constants.R_OK);
    return undefined;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return error.code;
  }
}

/** @throws WritError CONFIG_*, STATE_DAMAGED */
export async function readOfflineStatus(options: OfflineOptions): Promise<StatusReport> {
  const host = hostOnDisk(options);
  const known = readStatusFile(host.paths);
  const { last, mirrors } = known ?? {};
  const kept = withoutUndefined<Pick<StatusReport, 'last' | 'mirrors'>>({ last, mirrors });
  const report = statusReport(host, {
    version: options.version,
    state: 'stop',
    contact: { contact: contactIn(known) },
    held: await heldNow(host),
    problems: known?.problems ?? [],
  });
  return { ...report, ...kept };
}

/** `writ refusals` without an agent. @throws WritError CONFIG_*, STATE_DAMAGED */
export async function readOfflineRefusals(options: OfflineOptions): Promise<RefusalsResult> {
  return listRefusals(hostOnDisk(options));
}

function hostOnDisk({ configPath, nowMs }: OfflineOptions) {
  const { config } = loadConfig(configPath);
  const paths = hostPaths(config);
  const durable = createDurableFs();
  return {
    config,
    paths,
    clock: { nowMs: () => nowMs, monotonicMs: () => systemClock.monotonicMs() },
    client: storedTrust(paths.trust, config.root),
    ledger: openLedger(paths.ledger, durable),
    refusals: openRefusals(paths.rejected, durable),
  };
}

/** The part of a repository client that needs no repository. */
function storedTrust(directory: string, bootstrapRoot: string): HostView['client'] {
  const store = openTrustStore({ directory, bootstrapRoot, fs: createDurableFs() });
  const load = (): ReturnType<typeof recallFiles> => recallFiles(store.loadRoot(), store.loadFiles());
  return {
    status: () => (store.isEmpty() ? undefined : describeTrust(recallRoles(load(), store.loadDelegated))),
    knownTarget: (bundle, channel) =>
      store.isEmpty() ? undefined : knownTarget(load(), { bundle, channel }, store.loadDelegated),
    stillVerifies: (proof) =>
      store.isEmpty() ? undefined : stillVerifies(load(), proof, store.loadDelegated),
  };
}

/** @returns entries, newest first. @throws WritError CONFIG_* */
export async function readOfflineHistory(
  options: OfflineOptions & { readonly limit: number; readonly cycle?: string },
): Promise<readonly HistoryEntry[]> {
  const { config } = loadConfig(options.configPath);
  return readHistory(hostPaths(config), options);
}
