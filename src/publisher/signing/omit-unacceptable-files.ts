// Verifies the files that are signed and not published yet, before the online keys sign them. A file of one team that
// has expired, contains an older release than hosts accepted, or lists a missing archive must not harm other teams. It is
// omitted with its cause, and hosts keep the published file of that role.
import { isWritError, WritError } from '../../core/errors.js';
import { defaultArchiveLimits } from '../../core/limits.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { requireFresh } from '../../core/tuf/metadata-checks.js';
import type { ParsedFile } from '../../core/tuf/tuf-metadata.js';
import type { Clock } from '../../platform/time/clock.js';
import { checkArchive, requireLength } from '../archive/check-archive.js';
import type { IgnoredFile } from '../repository/ignored-file.js';
import { parseReleases } from '../repository/metadata-content.js';
import { filesOf } from '../repository/release-files.js';
import { metadataName } from '../repository/repository-layout.js';
import { isSameFile, type RepositoryState, withoutWaiting } from '../repository/repository-state.js';
import { chooseSigningTimeMs } from './signing-time.js';

/** `content` reads and unpacks each new archive; `length` only compares its length. */
export type ArchiveDepth = 'content' | 'length';

interface Judging {
  readonly state: RepositoryState;
  readonly nowMs: number;
  readonly depth: ArchiveDepth;
}

/** @returns the state without waiting files of teams that hosts would refuse; `ignored` lists these too */
export async function omitUnacceptableFiles(
  state: RepositoryState,
  clock: Clock,
  depth: ArchiveDepth = 'content',
): Promise<RepositoryState> {
  const judging = { state, depth, nowMs: chooseSigningTimeMs(state, clock.nowMs()) };
  const delegated = new Map(state.delegated);
  const ignored = [...state.ignored];
  for (const [role, file] of state.delegated) {
    const live = state.live.delegated.get(role);
    const refused = isSameFile(file, live) ? undefined : await judgeFile(judging, file, live);
    if (refused === undefined) continue;
    ignored.push(refused);
    if (live === undefined) delegated.delete(role);
    else delegated.set(role, live);
  }
  return { ...state, delegated, ignored };
}

/**
 * For reports: a signing fails where hosts would refuse the waiting targets, and then publishes no file.
 * @returns the state without any waiting file that cannot be published; `ignored` lists these too
 */
export async function omitUnpublishableFiles(
  state: RepositoryState,
  clock: Clock,
  depth: ArchiveDepth,
): Promise<RepositoryState> {
  const shown = await omitUnacceptableFiles(state, clock, depth);
  const { targets, live } = state;
  if (targets === live.targets) return shown;
  const judging = { state, depth, nowMs: chooseSigningTimeMs(state, clock.nowMs()) };
  const refused = await judgeFile(judging, targets, live.targets);
  return refused === undefined ? shown : { ...withoutWaiting(shown), ignored: [...shown.ignored, refused] };
}

/** @returns the file with the reason why hosts would refuse it; undefined for an acceptable file */
async function judgeFile(
  judging: Judging,
  file: ParsedFile<'targets'>,
  live: ParsedFile<'targets'> | undefined,
): Promise<IgnoredFile | undefined> {
  try {
    requireFresh(file, judging.nowMs);
    await requireReleases(judging, file, live);
    return undefined;
  } catch (error) {
    if (isWritError(error) && error.code !== 'INTERNAL')
      return { name: metadataName(file.name, file.signed.version), cause: error };
    throw error;
  }
}

async function requireReleases(
  { state: { layout }, depth }: Judging,
  file: ParsedFile<'targets'>,
  live: ParsedFile<'targets'> | undefined,
): Promise<void> {
  const listed = live === undefined ? [] : parseReleases(live.signed);
  const before = new Map(listed.map((entry) => [entry.path, entry]));
  const unpacked = new Set<string>();
  for (const { path, file: entry, release } of parseReleases(file.signed)) {
    const known = before.get(path);
    if (known !== undefined) requireNotBehind(known.release, release);
    if (known?.file.hashes['sha256'] === entry.hashes['sha256']) continue;
    if (depth === 'length')
      for (const one of filesOf({ file: entry, release })) requireLength({ layout, path }, one);
    else await checkArchive({ layout, path, file: entry, limits: defaultArchiveLimits, unpacked });
  }
}

/** Hosts that accepted the published release refuse a lower serial, and treat a shorter list of withdrawals as a replay. */
function requireNotBehind(live: ReleaseInfo, next: ReleaseInfo): void {
  const back = next.serial < live.serial && !next.withdrawn.includes(live.serial);
  const forgotten = live.withdrawn.find((serial) => !next.withdrawn.includes(serial));
  if (!back && forgotten === undefined) return;
  throw new WritError('RELEASE_REFUSED', `${live.bundle}: ${next.serial} is older than ${live.serial}`, {
    facts: { bundle: live.bundle, expected: live.serial, actual: next.serial, forgotten },
  });
}
