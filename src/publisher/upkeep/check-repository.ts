// `writ repo check`: the whole repository as clients will meet it, from the first root: every root, every role, every
// archive that is listed. Goes on after a problem and reports each with the code that a client would give.
// Reads only; memory does not grow with the archives.
import { isWritError } from '../../core/errors.js';
import { type CheckedRelease, checkArchive } from '../archive/check-archive.js';
import { layoutOf, type RepositoryLayout } from '../repository/repository-layout.js';
import { isWaiting, readRepositoryState } from '../repository/repository-state.js';
import { type CheckedRoles, checkRoles, checkRoots, type RoleCount } from './check-roles.js';
import type { CheckOptions, CheckProblem, Findings } from './finding.js';
import { refreshAsNewHost } from './new-host.js';

export interface CheckReport {
  readonly problems: readonly CheckProblem[];
  /** Problems beyond those that are listed. */
  readonly moreProblems: number;
  readonly roots: number;
  readonly roles: readonly RoleCount[];
  readonly archives: number;
  readonly archiveBytes: number;
  /** What is no problem, and yet worth knowing. */
  readonly notes: readonly string[];
}

const maxProblems = 500;

/** @throws WritError DISK_* when the disk itself fails; everything else is in the report */
export async function checkRepository(options: CheckOptions): Promise<CheckReport> {
  const layout = layoutOf(options.repository);
  const { findings, result } = createFindings();
  options.report.begin('roots');
  const roots = checkRoots(layout, findings, options);
  options.report.begin('roles');
  const roles = roots && checkRoles(layout, findings, { ...options, roots });
  // Our own rules in one run see what single checks overlook; behind a problem they would only say it again.
  if (roots !== undefined && result.problems.length === 0) {
    const host = { directory: layout.directory, anchor: roots.anchor, clock: options.clock };
    await findings.attemptLater('metadata', () => refreshAsNewHost(host));
  }
  if (result.problems.length === 0) checkWaiting(layout, findings, options);
  const archives =
    roles === undefined ? { count: 0, bytes: 0 } : await checkArchives(layout, roles, findings, options);
  return {
    ...result,
    roots: roots?.count ?? 0,
    roles: roles?.counts ?? [],
    archives: archives.count,
    archiveBytes: archives.bytes,
  };
}

function createFindings() {
  const result = { problems: [] as CheckProblem[], moreProblems: 0, notes: [] as string[] };
  const add = (where: string, error: unknown): undefined => {
    if (!isWritError(error) || error.code === 'INTERNAL' || error.code === 'INTERRUPTED') throw error;
    const { code, message } = error;
    if (result.problems.length < maxProblems) result.problems.push({ code, where, message });
    else result.moreProblems += 1;
    return undefined;
  };
  const findings: Findings = {
    attempt: (where, act) => {
      try {
        return act();
      } catch (error) {
        return add(where, error);
      }
    },
    attemptLater: async (where, act) => {
      try {
        return await act();
      } catch (error) {
        return add(where, error);
      }
    },
    note: (text) => result.notes.push(text),
  };
  return { findings, result };
}

function checkWaiting(layout: RepositoryLayout, findings: Findings, { keysDirectory }: CheckOptions): void {
  const state = findings.attempt('metadata', () => readRepositoryState(layout, keysDirectory));
  if (state === undefined) return;
  for (const name of state.ignored)
    findings.note(`metadata/${name} is newer and does not verify: it cannot go live`);
  if (isWaiting(state)) {
    findings.note('a newer version of a role waits for the online keys (writ refresh)');
  }
}

async function checkArchives(
  layout: RepositoryLayout,
  { releases }: CheckedRoles,
  findings: Findings,
  options: CheckOptions,
): Promise<{ count: number; bytes: number }> {
  const total = { count: 0, bytes: 0 };
  const unpacked = new Set<string>();
  for (const [index, { path, file }] of releases.entries()) {
    options.report.begin('archives', `${index + 1} of ${releases.length}   ${path}`);
    const checked = await findings.attemptLater<CheckedRelease>(path, () =>
      checkArchive({ ...options, layout, path, file, unpacked }),
    );
    total.count += 1;
    total.bytes += checked?.bytes ?? 0;
  }
  return total;
}
