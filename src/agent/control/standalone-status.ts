// The status of a host after a standalone run: written for `writ status`, and reported to a fleet server.
import type { CycleResult, Problem } from '../../core/cycle/cycle-report.js';
import { withoutUndefined } from '../../core/given.js';
import type { CommandObservation, StatusReport } from '../../core/status/status.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { identityOf } from '../fleet/identity.js';
import type { EndedPull } from '../fleet/report-once.js';
import { type ContactKeeper, type ContactMemory, contactIn } from '../freshness/contact-memory.js';
import { createStaleWatch } from '../freshness/stale-watch.js';
import { openInstallId, thisMachine } from '../identity/install-id.js';
import { readObservation } from '../report/bake-status.js';
import { readStatusFile, writeStatusFile } from '../report/status-file.js';
import { statusReport } from '../report/status-report.js';
import type { Host } from '../state/host.js';

/** The part of the end of a command that the status contains. */
export interface CommandEnd {
  readonly last?: CycleResult | undefined;
  readonly contact?: ContactMemory;
  /** The observation of a command that observes bake times; undefined for other commands. */
  readonly observation?: CommandObservation;
}

/** The end of a standalone run: its response, and the part that the status contains from then on. */
export interface StandaloneAnswer<T> extends CommandEnd {
  readonly answer: T;
}

/**
 * Writes status.json. After an attempt to reach the server it is written even if nothing else changed, because no other file has
 * the time of the last success, by which `staleAfter` and `maxStale` are judged. An observation is
 * written, because its end is later than before.
 */
export function publishStatus(host: Host, version: string, end: CommandEnd): void {
  const isBeat = end.contact !== undefined || end.observation !== undefined;
  writeStatusFile(host, standaloneStatus(host, version, end), isBeat ? 'beat' : 'news');
}

/** Writes a refresh into status.json during a download, unless it is the first pull: there is no older time to replace. */
export function publishRefresh(host: Host, version: string, contact: ContactMemory): void {
  if (readStatusFile(host.paths) !== undefined) publishStatus(host, version, { contact });
}

export interface RefreshWatch {
  onRefreshed(): void;
  /** Resolves after the last check, which it makes itself. */
  end(): Promise<void>;
}

/** Publishes each refresh of a standalone pull, and runs `onStale` when it is due: a download may take longer than `maxStale`. */
export function watchRefreshes(
  host: Host,
  {
    version,
    contact,
    signal,
  }: { readonly version: string; readonly contact: ContactKeeper; readonly signal: AbortSignal },
): RefreshWatch {
  const stale = createStaleWatch(readBootId());
  let checks: Promise<unknown> = Promise.resolve();
  const check = (): Promise<unknown> => {
    checks = checks.then(() => stale.check(host, contact, signal));
    return checks;
  };
  return {
    onRefreshed: () => {
      publishRefresh(host, version, contact.read());
      void check();
    },
    end: async () => {
      await check();
    },
  };
}

/**
 * @returns the status report with the agent state `stop`. Contact, last cycle and mirrors that the command does not
 * have are taken from status.json.
 */
export function standaloneStatus(host: Host, version: string, end: CommandEnd): StatusReport {
  const known = readStatusFile(host.paths);
  const { last, contact, observation = readObservation(known, host.clock.nowMs()) } = end;
  const report = statusReport(host, {
    ...{ version, state: 'stop', last, observation, problems: [] },
    contact: contact ?? { contact: contactIn(known) },
  });
  const mirrors = host.config.repository.length < 2 ? undefined : known?.mirrors;
  const kept = withoutUndefined<Pick<StatusReport, 'mirrors' | 'last'>>({ mirrors, last: known?.last });
  return { ...kept, ...report };
}

/** @returns one warning if the report could not be sent, otherwise none */
export async function reportToFleet(host: Host, pull: Omit<EndedPull, 'identity'>): Promise<Problem[]> {
  if (host.config.fleet === undefined) return [];
  const identity = identityOf(host, openInstallId(host, thisMachine));
  const { reportOnce } = await import('../fleet/report-once.js');
  const problem = await reportOnce(host, { ...pull, identity });
  return problem === undefined ? [] : [problem];
}
