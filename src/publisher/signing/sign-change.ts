// The way of every change of what the repository lists: decided on what is seen, keys opened before the lock; under the
// lock what waits and is not fit to go live is left out, the change is decided again and signed, and it goes live where the online keys are at hand,
// or waits for them. What is changed, and who signs it, is the caller's.
import type { OnlineRole } from '../../core/tuf/tuf-metadata.js';
import type { KeyDirectory } from '../keys/key-directory.js';
import type { Signer } from '../keys/signer.js';
import { layoutOf } from '../repository/repository-layout.js';
import { isWaiting, type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import {
  type RepositoryWriter,
  type WriterOptions,
  withRepository,
} from '../repository/repository-writer.js';
import { dropUnfit } from './drop-unfit.js';
import { findOnlineSigners, type OnlineKeys, type SignedVersions, signOnline } from './online-signing.js';

export interface ChangeOptions extends WriterOptions {
  readonly keys: KeyDirectory;
  /** Tells whoever watches how far it is; a Reporter of the command line fits. */
  readonly report: { begin(step: string, text?: string): void };
}

/** @typeParam Done what the caller tells of its part */
export type SignedChange<Done> =
  | (Done & { readonly kind: 'live'; readonly versions: SignedVersions })
  | (Done & { readonly kind: 'waiting'; readonly missing: readonly OnlineRole[] });

export type ChangeResult<Done> = { readonly kind: 'nothing-new' } | SignedChange<Done>;

/** By role, opened before the lock: nobody is asked for a passphrase while others wait for it. */
export type RoleSigners = ReadonlyMap<string, readonly Signer[]>;

export interface Change<Plan, Done> {
  /** Asked twice: before a key is opened, and again under the lock; undefined when nothing is to be changed. */
  readonly plan: (state: RepositoryState) => Plan | undefined;
  readonly openSigners: (seen: RepositoryState, plan: Plan) => Promise<RoleSigners>;
  /** Under the lock. @returns the state with what was signed as its newest */
  readonly apply: (
    plan: Plan,
    signers: RoleSigners,
    at: { readonly writer: RepositoryWriter; readonly before: RepositoryState },
  ) => Promise<{ readonly state: RepositoryState; readonly done: Done }>;
  /** What is told when there is nothing to change, and what waits goes live. */
  readonly unchanged: Done;
}

/** @returns what the change would do now, without a key and without a write; undefined when there is nothing to do */
export function previewChange<Plan>(
  { repository, keys }: ChangeOptions,
  plan: (state: RepositoryState) => Plan,
): Plan {
  return plan(readRepositoryState(layoutOf(repository), keys.path));
}

/**
 * @throws WritError KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing went
 *   live), SIGNATURE_DISAGREEMENT, DISK_*, and what the change throws
 */
export async function signChange<Plan, Done extends object>(
  options: ChangeOptions,
  { plan, openSigners, apply, unchanged }: Change<Plan, Done>,
): Promise<ChangeResult<Done>> {
  const seen = readRepositoryState(layoutOf(options.repository), options.keys.path);
  const first = plan(seen);
  // Before a key is opened or a lock taken: nothing new costs nothing and writes nothing.
  if (first === undefined && !isWaiting(seen)) return { kind: 'nothing-new' };
  const signers = first === undefined ? new Map<string, readonly Signer[]>() : await openSigners(seen, first);
  const online = await findOnlineSigners(options.keys, seen);
  return withRepository(options, async (writer) => {
    const before = await readForChange(writer, online, options);
    const again = plan(before);
    const nothing = { state: before, done: unchanged };
    const { state, done } = again === undefined ? nothing : await apply(again, signers, { writer, before });
    return takeLive({ writer, state, online, options }, done);
  });
}

/** Under the lock. @returns the state to build on: what waits and may not go live is left out, where it would go live */
export async function readForChange(
  { layout }: RepositoryWriter,
  online: OnlineKeys,
  { keys, clock }: ChangeOptions,
): Promise<RepositoryState> {
  const state = readRepositoryState(layout, keys.path);
  return 'signers' in online ? dropUnfit(state, clock) : state;
}

/** Signs snapshot and timestamp, verifies as a client would and goes live; or waits for who has the online keys. */
export async function takeLive<Done extends object>(
  signed: {
    readonly writer: RepositoryWriter;
    readonly state: RepositoryState;
    readonly online: OnlineKeys;
    readonly options: Pick<ChangeOptions, 'clock' | 'report'>;
  },
  done: Done,
): Promise<SignedChange<Done>> {
  const { writer, state, online, options } = signed;
  if (!('signers' in online)) return { ...done, kind: 'waiting', missing: online.missing };
  options.report.begin('sign', 'snapshot, timestamp');
  const { signers } = online;
  const versions = await signOnline({ writer, state, signers, clock: options.clock });
  return { ...done, kind: 'live', versions };
}
