// One change of what the repository lists, without a new tree: new entries, signed by the roles that list their paths.
// `writ withdraw` and `writ promote` decide; how it goes live is sign-change's.
import type { TargetFile } from '../../core/tuf/tuf-metadata.js';
import { requireKeysOf } from '../keys/key-directory.js';
import type { Signer } from '../keys/signer.js';
import { roleOfPath } from '../repository/listing.js';
import type { FilePlace } from '../repository/repository-layout.js';
import { isWaiting, type RepositoryState } from '../repository/repository-state.js';
import type { SignedRole } from '../signing/online-signing.js';
import { type ChangeOptions, type ChangeResult, changeRepository, readSeen } from '../signing/sign-change.js';
import { holderOfRole, signedRole, signRole } from '../signing/sign-role.js';

export interface TargetsChange<Info> {
  /** New entries by path; the role that lists each path signs it. */
  readonly entries: Readonly<Record<string, TargetFile>>;
  /** Files of releases that have to be there under the name of another channel too. */
  readonly copies: readonly { readonly from: FilePlace; readonly channel: string }[];
  readonly info: Info;
}

interface ChangedTargets<Info> {
  /** Absent when there was nothing to change, and what waited went live. */
  readonly info?: Info | undefined;
  readonly signed: readonly SignedRole[];
}

export type TargetsResult<Info> = ChangeResult<ChangedTargets<Info>>;

/**
 * @param plan asked twice: before a key is opened, and again under the lock; undefined when nothing is to be changed
 * @throws WritError KEYS_MISSING, as changeRepository, and what plan throws
 */
export async function changeTargets<Info>(
  options: ChangeOptions,
  plan: (state: RepositoryState) => TargetsChange<Info> | undefined,
): Promise<TargetsResult<Info>> {
  const { keys, report } = options;
  const seen = readSeen(options);
  const first = plan(seen);
  // Before a key is opened or a lock taken: nothing new costs nothing and writes nothing.
  if (first === undefined && !isWaiting(seen)) return { kind: 'nothing-new' };
  const opened = new Map<string, readonly Signer[]>();
  for (const role of rolesOf(seen, first?.entries)) {
    opened.set(role, await requireKeysOf(keys, holderOfRole(seen, role)));
  }
  return changeRepository<ChangedTargets<Info>>(options, seen, async (writer, before, clock) => {
    const again = plan(before);
    const signed: SignedRole[] = [];
    let state = before;
    for (const { from, channel } of again?.copies ?? []) writer.copyFile(from, channel);
    for (const role of rolesOf(before, again?.entries)) {
      report.begin('sign', role);
      const own = Object.entries(again?.entries ?? {}).filter(([path]) => roleOfPath(before, path) === role);
      const entries = Object.fromEntries(own);
      state = await signRole({ writer, state, role, entries, signers: opened.get(role) ?? [], clock });
      signed.push(signedRole(state, role));
    }
    return { state, done: { info: again?.info, signed } };
  });
}

function rolesOf(state: RepositoryState, entries: object = {}): ReadonlySet<string> {
  return new Set(Object.keys(entries).map((path) => roleOfPath(state, path)));
}
