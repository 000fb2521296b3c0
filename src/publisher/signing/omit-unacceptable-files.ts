// Verifies the files that teams signed and that are not published yet, before the online keys sign them. A file of one team that
// has expired, contains an older release than hosts accepted, or lists a missing archive must not harm other teams. It is
// omitted, and hosts keep the published file of that role.
import { isWritError, WritError } from '../../core/errors.js';
import { defaultArchiveLimits } from '../../core/limits.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { requireFresh } from '../../core/tuf/metadata-checks.js';
import type { ParsedFile } from '../../core/tuf/tuf-metadata.js';
import type { Clock } from '../../platform/time/clock.js';
import { checkArchive } from '../archive/check-archive.js';
import { releasesOf } from '../repository/metadata-content.js';
import { metadataName, type RepositoryLayout } from '../repository/repository-layout.js';
import { isSameFile, type RepositoryState } from '../repository/repository-state.js';
import { chooseSigningTimeMs } from './signing-time.js';

/** @returns the state without waiting files that hosts would refuse; `ignored` lists their names too */
export async function omitUnacceptableFiles(state: RepositoryState, clock: Clock): Promise<RepositoryState> {
  const delegated = new Map(state.delegated);
  const ignored = [...state.ignored];
  for (const [role, file] of state.delegated) {
    const live = state.live.delegated.get(role);
    if (
      isSameFile(file, live) ||
      (await isAcceptable(state.layout, file, live, chooseSigningTimeMs(state, clock.nowMs())))
    )
      continue;
    ignored.push(metadataName(role, file.signed.version));
    if (live === undefined) delegated.delete(role);
    else delegated.set(role, live);
  }
  return { ...state, delegated, ignored };
}

async function isAcceptable(
  layout: RepositoryLayout,
  file: ParsedFile<'targets'>,
  live: ParsedFile<'targets'> | undefined,
  nowMs: number,
): Promise<boolean> {
  try {
    requireFresh(file, nowMs);
    await requireReleases(layout, file, live);
    return true;
  } catch (error) {
    if (isWritError(error) && error.code !== 'INTERNAL') return false;
    throw error;
  }
}

async function requireReleases(
  layout: RepositoryLayout,
  file: ParsedFile<'targets'>,
  live: ParsedFile<'targets'> | undefined,
): Promise<void> {
  const listed = live === undefined ? [] : releasesOf(live.signed);
  const before = new Map(listed.map((entry) => [entry.path, entry]));
  const unpacked = new Set<string>();
  for (const { path, file: entry, release } of releasesOf(file.signed)) {
    const known = before.get(path);
    if (known !== undefined) requireNotBehind(known.release, release);
    if (known?.file.hashes['sha256'] === entry.hashes['sha256']) continue;
    await checkArchive({ layout, path, file: entry, limits: defaultArchiveLimits, unpacked });
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
