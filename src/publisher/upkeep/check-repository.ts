// `writ repo check`: verifies the complete repository like a client, from the first root: every root, every role, every
// listed archive. A problem does not stop the check; each is reported with the error code of a client. Reads only; memory
// does not grow with the archives.
import { type ErrorCode, isWritError, orUndefined, WritError } from '../../core/errors.js';
import { parseReleaseInfo } from '../../core/release/release.js';
import { createTally } from '../../core/work-report.js';
import { checkArchive } from '../archive/check-archive.js';
import { checkDeltas } from '../delta/check-deltas.js';
import { releaseHistory } from '../release/release-history.js';
import { ignoredHint, ignoredText } from '../repository/ignored-file.js';
import { layoutOf, type RepositoryLayout } from '../repository/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import { judgePublishedSnapshot } from '../repository/seen-files.js';
import { omitUnpublishableFiles } from '../signing/omit-unacceptable-files.js';
import { listWaitingRoles } from '../signing/online-signing.js';
import { refreshAsNewHost } from '../signing/self-check.js';
import { measureSignedAheadMs } from '../signing/signing-time.js';
import { type CheckOptions, checkRoles, checkRoots, type Findings } from './check-roles.js';

export type CheckReport = Awaited<ReturnType<typeof checkRepository>>;

const maxProblems = 500;

/**
 * Verifies the complete repository. Writes nothing.
 * @returns the counts of archives, their bytes, deltas, roots, and the verified roles. `problems`: at most 500, with the code
 *   of a client and the path; empty for a good repository; `moreProblems` counts the others. `notes`: sentences for people, no
 *   problems. `roots` is 0 and `roles` is empty if no root can be trusted
 * @throws WritError DISK_* when the disk itself fails; all other problems are in the report
 */
export async function checkRepository(options: CheckOptions) {
  const layout = layoutOf(options.repository);
  const { findings, result } = createFindings();
  options.report.begin('roots');
  const roots = checkRoots(layout, findings, options);
  options.report.begin('roles');
  const roles = roots && checkRoles(layout, findings, { ...options, roots });
  // One refresh under the rules of a host finds what the single checks cannot. After a problem it would only repeat that
  // problem.
  if (roots !== undefined && result.problems.length === 0) {
    const place = { directory: layout.directory, clock: options.clock };
    await findings.attemptLater('metadata', () => refreshAsNewHost(roots.anchor, place));
  }
  if (result.problems.length === 0) await checkWaiting(layout, findings, options);
  const archives = await checkArchives(layout, roles?.releases ?? [], findings, options);
  return { ...result, roots: roots?.count ?? 0, roles: roles?.counts ?? [], ...archives };
}

function createFindings() {
  /** Problems with the error code of a client and the path below the repository. */
  const problems: { readonly code: ErrorCode; readonly where: string; readonly message: string }[] = [];
  /** `moreProblems` counts the problems beyond the listed ones. Notes are information, not problems. */
  const result = { problems, moreProblems: 0, notes: [] as string[] };
  const add = (where: string, error: unknown): undefined => {
    if (!isWritError(error) || error.code === 'INTERNAL') throw error;
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
    attemptLater: (where, act) => act().catch((error: unknown) => add(where, error)),
    note: (text) => result.notes.push(text),
  };
  return { findings, result };
}

async function checkWaiting(
  layout: RepositoryLayout,
  findings: Findings,
  options: CheckOptions,
): Promise<void> {
  const state = findings.attempt('metadata', () => readRepositoryState(layout, options.keysDirectory));
  if (state === undefined) return;
  findings.attempt('metadata/timestamp.json', () => requireNotAhead(state, options.clock.nowMs()));
  findings.attempt('metadata', () => {
    const { rollback, newer } = judgePublishedSnapshot(state);
    if (newer !== undefined) findings.note(newer);
    if (rollback !== undefined) throw rollback;
  });
  const shown = await omitUnpublishableFiles(state, options.clock, 'content');
  for (const file of shown.ignored) findings.note(`metadata/${ignoredText(file)}. ${ignoredHint(file)}`);
  for (const { role, version } of listWaitingRoles(shown))
    findings.note(`${role} v${version} is signed and waits for the online keys (writ refresh)`);
}

/**
 * Hosts use the signed time as their lower bound. Until their own clock reaches it, they do not notice that a role expires.
 */
function requireNotAhead(state: RepositoryState, nowMs: number): void {
  const aheadMs = measureSignedAheadMs(state, nowMs);
  if (aheadMs === undefined) return;
  const signedAt = new Date(nowMs + aheadMs).toISOString();
  throw new WritError('SIGNED_AHEAD', `signed at ${signedAt}, which is in the future`, {
    facts: { signedAt, aheadMs },
  });
}

async function checkArchives(
  layout: RepositoryLayout,
  releases: ReturnType<typeof checkRoles>['releases'],
  findings: Findings,
  options: CheckOptions,
) {
  let archiveBytes = 0;
  let deltaCount = 0;
  let untried = 0;
  // Problems of the metadata are already reported; without a state, no base of a delta is known.
  const state = orUndefined(() => readRepositoryState(layout, options.keysDirectory));
  const unpacked = new Set<string>();
  // One history for each bundle, because it is computed from every version of its role.
  const histories = new Map<string, ReturnType<typeof releaseHistory>>();
  let what = '';
  // An archive is read twice, for its digest and for its files. A delta costs one reading of the archive of its base, which
  // has about the same size.
  const total = releases.reduce((sum, one) => sum + one.file.length * (2 + deltasOf(one)), 0);
  const part = createTally(total, (done) =>
    options.report.progress('archives', { done, total, unit: 'bytes' }, what),
  );
  for (const [index, { path, file }] of releases.entries()) {
    what = `${index + 1} of ${releases.length}   ${path}`;
    options.report.begin('archives', what);
    const check = () =>
      checkArchive({ ...options, layout, path, file, unpacked, more: part(2 * file.length) });
    const release = await findings.attemptLater(path, check);
    if (release === undefined) continue;
    archiveBytes += file.length;
    const { deltas = [] } = release;
    if (deltas.length === 0) continue;
    deltaCount += deltas.length;
    const history =
      histories.get(release.bundle) ?? (state === undefined ? [] : releaseHistory(state, release.bundle));
    histories.set(release.bundle, history);
    const tried = await findings.attemptLater(path, () =>
      checkDeltas({ ...options, layout, release, history, begin: () => part(file.length) }),
    );
    untried += tried ?? 0;
  }
  if (untried > 0) {
    const what = untried === 1 ? 'the base of 1 delta is' : `the bases of ${untried} deltas are`;
    findings.note(`${what} gone: compared by digest only`);
  }
  return { archives: releases.length, archiveBytes, deltas: deltaCount };
}

function deltasOf({ path, file }: ReturnType<typeof checkRoles>['releases'][number]): number {
  return orUndefined(() => parseReleaseInfo(file.custom, path))?.deltas?.length ?? 0;
}
