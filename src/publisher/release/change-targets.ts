// One change of what the repository lists, without a new tree: decided on a state that verifies, signed by the
// roles that list the paths. `writ withdraw` and `writ promote` decide; how it goes live is sign-change's.
import type { TargetFile } from '../../core/tuf/tuf-metadata.js';
import { type KeyDirectory, requireKeysOf } from '../keys/key-directory.js';
import type { Signer } from '../keys/signer.js';
import { roleOfPath } from '../repository/listing.js';
import { layoutOf } from '../repository/repository-layout.js';
import { isWaiting, type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import type { ArchivePlace, RepositoryWriter } from '../repository/repository-writer.js';
import type { SignedRole } from '../signing/online-signing.js';
import { type ChangeOptions, type SignedChange, signChange } from '../signing/sign-change.js';
import { holderOfRole, signRole, versionOfRole } from '../signing/sign-role.js';

export interface TargetsChange<Info> {
  /** New entries by path; the role that lists each path signs it. */
  readonly entries: Readonly<Record<string, TargetFile>>;
  /** Archives that have to be there under the name of another channel too. */
  readonly copies: readonly ArchiveCopy[];
  readonly info: Info;
}

export interface ArchiveCopy {
  readonly from: ArchivePlace;
  readonly channel: string;
}

interface ChangedTargets<Info> {
  /** Absent when there was nothing to change, and what waited went live. */
  readonly info?: Info;
  readonly signed: readonly SignedRole[];
}

export type ChangeResult<Info> = { readonly kind: 'nothing-new' } | SignedChange<ChangedTargets<Info>>;

/**
 * @param plan asked twice: before a key is opened, and again under the lock; undefined when nothing is to be changed
 * @throws WritError KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing went
 *   live), SIGNATURE_DISAGREEMENT, DISK_*, and what plan throws
 */
export async function changeTargets<Info>(
  options: ChangeOptions,
  plan: (state: RepositoryState) => TargetsChange<Info> | undefined,
): Promise<ChangeResult<Info>> {
  const { keys } = options;
  const seen = readRepositoryState(layoutOf(options.repository), keys.path);
  const first = plan(seen);
  // Before a key is opened or a lock taken: nothing new costs nothing and writes nothing.
  if (first === undefined && !isWaiting(seen)) return { kind: 'nothing-new' };
  const signers = await openSigners(keys, seen, first);
  return signChange<ChangedTargets<Info>>(options, {
    seen,
    sign: async (writer, before) => {
      const change = plan(before);
      if (change === undefined) return { state: before, done: { signed: [] } };
      const { state, signed } = await apply({ writer, before, signers, change }, options);
      return { state, done: { info: change.info, signed } };
    },
  });
}

type RoleSigners = ReadonlyMap<string, readonly Signer[]>;

async function openSigners(
  keys: KeyDirectory,
  state: RepositoryState,
  change: TargetsChange<unknown> | undefined,
): Promise<RoleSigners> {
  const signers = new Map<string, readonly Signer[]>();
  for (const role of rolesOf(state, change)) {
    signers.set(role, await requireKeysOf(keys, holderOfRole(state, role)));
  }
  return signers;
}

function rolesOf(state: RepositoryState, change: TargetsChange<unknown> | undefined): string[] {
  const paths = Object.keys(change?.entries ?? {});
  return [...new Set(paths.map((path) => roleOfPath(state, path)))];
}

interface Application<Info> {
  readonly writer: RepositoryWriter;
  readonly before: RepositoryState;
  readonly signers: RoleSigners;
  readonly change: TargetsChange<Info>;
}

async function apply<Info>(
  { writer, before, signers, change }: Application<Info>,
  { clock, report }: ChangeOptions,
): Promise<{ state: RepositoryState; signed: SignedRole[] }> {
  for (const { from, channel } of change.copies) writer.copyArchive(from, channel);
  const signed: SignedRole[] = [];
  let state = before;
  for (const role of rolesOf(before, change)) {
    report.begin('sign', role);
    const own = Object.entries(change.entries).filter(([path]) => roleOfPath(before, path) === role);
    const entries = Object.fromEntries(own);
    state = await signRole({ writer, state, role, entries, signers: signers.get(role) ?? [], clock });
    signed.push({ role, version: versionOfRole(state, role) });
  }
  return { state, signed };
}
