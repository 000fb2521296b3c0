// The way of every change of what the repository lists: under the lock, what waits is vetted, the change is signed, and
// it goes live where the online keys are at hand, or waits for them. What is signed, and by whom, is the caller's.
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Clock } from '../../platform/time/clock.js';
import type { KeyDirectory } from '../keys/key-directory.js';
import { type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import { type RepositoryWriter, withRepository } from '../repository/repository-writer.js';
import { vetWaiting } from './check-unpublished.js';
import { findOnlineSigners, type SignedVersions, signOnline } from './online-signing.js';

/** Tells whoever watches how far it is; a Reporter of the command line fits. */
export interface StepReport {
  begin(step: string, text?: string): void;
}

export interface ChangeOptions {
  readonly repository: string;
  readonly keys: KeyDirectory;
  /** For whoever finds the lock held, as `withdraw`. */
  readonly holder: string;
  readonly clock: Clock;
  readonly durableFs: DurableFs;
  readonly lockWaitMs: number;
  readonly report: StepReport;
  readonly signal?: AbortSignal;
}

/** @typeParam Done what the caller tells of its part */
export type SignedChange<Done> =
  | (Done & { readonly kind: 'live'; readonly versions: SignedVersions })
  | (Done & { readonly kind: 'waiting'; readonly missing: readonly OnlineRole[] });

interface Change<Done> {
  /** Before the lock: says whose online keys are looked for. */
  readonly seen: RepositoryState;
  /** Under the lock: decides again, on what is there now. @returns the state with what was signed as its newest */
  readonly sign: (
    writer: RepositoryWriter,
    before: RepositoryState,
  ) => Promise<{ readonly state: RepositoryState; readonly done: Done }>;
}

/**
 * The caller has opened its own keys already: nobody is asked for a passphrase while others wait for the lock.
 * @throws WritError KEY_UNREADABLE, PASSPHRASE_*, REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing went live),
 *   SIGNATURE_DISAGREEMENT, DISK_*, and what sign throws
 */
export async function signChange<Done extends object>(
  options: ChangeOptions,
  { seen, sign }: Change<Done>,
): Promise<SignedChange<Done>> {
  const { keys, clock, report } = options;
  const online = await findOnlineSigners(keys, seen);
  return withRepository(options, async (writer) => {
    const read = readRepositoryState(writer.layout, keys.path);
    const before = 'signers' in online ? await vetWaiting(read, clock) : read;
    const { state, done } = await sign(writer, before);
    if (!('signers' in online)) return { ...done, kind: 'waiting', missing: online.missing };
    report.begin('sign', 'snapshot, timestamp');
    const versions = await signOnline({ writer, state, signers: online.signers, clock });
    return { ...done, kind: 'live', versions };
  });
}
