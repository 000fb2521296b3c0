// The way of every change of what the repository lists: decided on what is seen, keys opened before the lock; under the
// lock what waits and is not fit to go live is left out, the change is decided again and signed, and it goes live where the
// online keys are at hand, or waits for them. What is changed, and who signs it, is the caller's.
import { given } from '../../core/given.js';
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import type { WorkReport } from '../../core/work-report.js';
import type { KeyDirectory } from '../keys/key-directory.js';
import { layoutOf } from '../repository/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import {
  type RepositoryWriter,
  type WriterOptions,
  withRepository,
} from '../repository/repository-writer.js';
import { dropUnfit } from './drop-unfit.js';
import { findOnlineSigners, type SignedVersions, signOnline } from './online-signing.js';
import { type ClockCheck, type SigningClock, signedAheadMs, sureClock } from './signing-time.js';

export interface ChangeOptions extends WriterOptions {
  readonly keys: KeyDirectory;
  /** Tells whoever watches how far it is; a Reporter of the command line fits. */
  readonly report: WorkReport;
  readonly clockCheck?: ClockCheck | undefined;
}

/** @typeParam Done what the caller tells of its part */
export type SignedChange<Done> = Done & {
  /** How far the clock was behind what was signed before: its time was used. */
  readonly signedAheadMs?: number;
} & (
    | { readonly kind: 'live'; readonly versions: SignedVersions }
    | { readonly kind: 'waiting'; readonly missing: readonly OnlineRole[] }
  );

export type ChangeResult<Done> = { readonly kind: 'nothing-new' } | SignedChange<Done>;

/** @returns what a change is decided on before a key is opened: all that a preview needs */
export function readSeen({ repository, keys }: Pick<ChangeOptions, 'repository' | 'keys'>): RepositoryState {
  return readRepositoryState(layoutOf(repository), keys.path);
}

/**
 * @param seen whose root says which online keys are opened, before the lock
 * @param sign decides again, under the lock, and signs; what waits and may not go live is left out of its state, where
 *   this goes live. @returns the state with what was signed as its newest
 * @throws WritError KEY_UNREADABLE, PASSPHRASE_*, REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing was published),
 *   SIGNATURE_DISAGREEMENT, DISK_*, and what sign throws
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
  // Before a key is asked for.
  const clock = await sureClock(options, seen);
  const online = await findOnlineSigners(keys, seen);
  return withRepository(options, async (writer) => {
    const now = readSeen(options);
    const before = 'signers' in online ? await dropUnfit(now, clock) : now;
    const { state, done } = await sign(writer, before, clock);
    const told = { ...done, ...given({ signedAheadMs: signedAheadMs(before, clock.nowMs()) }) };
    if (!('signers' in online)) return { ...told, kind: 'waiting', missing: online.missing };
    report.begin('sign', 'snapshot, timestamp');
    const versions = await signOnline({ writer, state, signers: online.signers, clock });
    return { ...told, kind: 'live', versions };
  });
}
