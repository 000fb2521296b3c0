// Applies each change of the lists of releases. A change is decided and its keys are opened before the lock. Under the lock
// waiting files that hosts would refuse are omitted, and the change is decided again and signed. It is published where the
// online keys are available, and waits for them otherwise. The caller decides the change and its signers.
import { given } from '../../core/given.js';
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import type { WorkReport } from '../../core/work-report.js';
import type { KeyDirectory } from '../keys/key-directory.js';
import type { IgnoredFile } from '../repository/ignored-file.js';
import { listNewReleases, type NewListedRelease } from '../repository/listing.js';
import { layoutOf } from '../repository/repository-layout.js';
import { isWaiting, type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import {
  type RepositoryWriter,
  type WriterOptions,
  withRepository,
} from '../repository/repository-writer.js';
import { omitUnacceptableFiles } from './omit-unacceptable-files.js';
import { findOnlineSigners, type SignedVersions, signOnline } from './online-signing.js';
import {
  type ClockCheck,
  measureSignedAheadMs,
  requireReliableClock,
  type SigningClock,
} from './signing-time.js';

export interface ChangeOptions extends WriterOptions {
  readonly keys: KeyDirectory;
  /** Receives the progress; a Reporter of the command line is one. */
  readonly report: WorkReport;
  readonly clockCheck?: ClockCheck | undefined;
}

/** @typeParam Done the members that the caller adds to the result */
export type SignedChange<Done> = Done & {
  /** Milliseconds from the clock to the time of the signatures, where an earlier signature is later; absent up to a minute. */
  readonly signedAheadMs?: number;
  /** Releases that hosts see with this change, or once its snapshot is signed, and did not see before. */
  readonly newReleases: readonly NewListedRelease[];
  /** Present where newer files waited before this change: `newReleases` has their releases too. */
  readonly includesWaiting?: true;
  /** Newer files that this change left out, because hosts would refuse them. */
  readonly ignored: readonly IgnoredFile[];
} & (
    | { readonly kind: 'live'; readonly versions: SignedVersions }
    | { readonly kind: 'waiting'; readonly missing: readonly OnlineRole[] }
  );

export type ChangeResult<Done> = { readonly kind: 'nothing-new' } | SignedChange<Done>;

/** @returns the state without the lock, on which a change is decided before a key is opened, and which a preview uses */
export function readStateBeforeLock({
  repository,
  keys,
}: Pick<ChangeOptions, 'repository' | 'keys'>): RepositoryState {
  return readRepositoryState(layoutOf(repository), keys.path);
}

/**
 * Changes a repository under its lock: calls `sign`, then signs snapshot and timestamp.
 * @param seen the state before the lock; its root lists the online keys that are opened
 * @param sign decides again under the lock, and signs. If the change is published, its state has no waiting files that hosts
 *   would refuse. It returns the state with the signed files as the newest ones
 * @returns `done` with `live`: hosts see the change, in these versions; or with `waiting`: keys of the online roles in
 *   `missing` are not available, and neither role was signed
 * @throws WritError KEY_UNREADABLE, PASSPHRASE_*, CLOCK_UNSURE, REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing was published),
 *   SIGNATURE_DISAGREEMENT, DISK_*, and errors of `sign`
 */
export async function changeRepository<Done extends object>(
  options: ChangeOptions,
  seen: RepositoryState,
  sign: (
    writer: RepositoryWriter,
    before: RepositoryState,
    clock: SigningClock,
  ) => Promise<{ readonly state: RepositoryState; readonly done: Done }>,
): Promise<SignedChange<Done>> {
  const { keys, report } = options;
  // Before a passphrase is requested.
  const clock = await requireReliableClock(options, seen);
  const online = await findOnlineSigners(keys, seen);
  return withRepository(options, async (writer) => {
    const now = readStateBeforeLock(options);
    const before = 'signers' in online ? await omitUnacceptableFiles(now, clock) : now;
    const { state, done } = await sign(writer, before, clock);
    const result = {
      ...done,
      ...given({ signedAheadMs: measureSignedAheadMs(before, clock.nowMs()) }),
      newReleases: listNewReleases(state),
      ...(isWaiting(before) ? { includesWaiting: true as const } : {}),
      ignored: before.ignored,
    };
    if (!('signers' in online)) return { ...result, kind: 'waiting', missing: online.missing };
    report.begin('sign', 'snapshot, timestamp');
    const versions = await signOnline({ writer, state, signers: online.signers, clock });
    return { ...result, kind: 'live', versions };
  });
}
