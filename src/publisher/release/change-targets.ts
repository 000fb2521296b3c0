// One change of what the repository lists, without a new tree: new entries, signed by the roles that list their paths.
// `writ withdraw` and `writ promote` decide; how it goes live is sign-change's.
import type { TargetFile } from '../../core/tuf/tuf-metadata.js';
import { requireKeysOf } from '../keys/key-directory.js';
import type { Signer } from '../keys/signer.js';
import { roleOfPath } from '../repository/listing.js';
import type { RepositoryState } from '../repository/repository-state.js';
import type { ArchivePlace } from '../repository/repository-writer.js';
import type { SignedRole } from '../signing/online-signing.js';
import { type ChangeOptions, type ChangeResult, signChange } from '../signing/sign-change.js';
import { holderOfRole, signedRole, signRole } from '../signing/sign-role.js';

export interface TargetsChange<Info> {
  /** New entries by path; the role that lists each path signs it. */
  readonly entries: Readonly<Record<string, TargetFile>>;
  /** Archives that have to be there under the name of another channel too. */
  readonly copies: readonly { readonly from: ArchivePlace; readonly channel: string }[];
  readonly info: Info;
}

interface ChangedTargets<Info> {
  /** Absent when there was nothing to change, and what waited went live. */
  readonly info?: Info;
  readonly signed: readonly SignedRole[];
}

export type TargetsResult<Info> = ChangeResult<ChangedTargets<Info>>;

/** @throws WritError as signChange, and what plan throws */
export function changeTargets<Info>(
  options: ChangeOptions,
  plan: (state: RepositoryState) => TargetsChange<Info> | undefined,
): Promise<TargetsResult<Info>> {
  return signChange<TargetsChange<Info>, ChangedTargets<Info>>(options, {
    plan,
    openSigners: async (seen, { entries }) => {
      const signers = new Map<string, readonly Signer[]>();
      for (const role of rolesOf(seen, entries)) {
        signers.set(role, await requireKeysOf(options.keys, holderOfRole(seen, role)));
      }
      return signers;
    },
    apply: async ({ copies, entries: all, info }, opened, { writer, before }) => {
      for (const { from, channel } of copies) writer.copyArchive(from, channel);
      const signed: SignedRole[] = [];
      let state = before;
      for (const role of rolesOf(before, all)) {
        options.report.begin('sign', role);
        const own = Object.entries(all).filter(([path]) => roleOfPath(before, path) === role);
        const entries = Object.fromEntries(own);
        const signers = opened.get(role) ?? [];
        state = await signRole({ writer, state, role, entries, signers, clock: options.clock });
        signed.push(signedRole(state, role));
      }
      return { state, done: { info, signed } };
    },
    unchanged: { signed: [] },
  });
}

function rolesOf(state: RepositoryState, entries: TargetsChange<unknown>['entries']): ReadonlySet<string> {
  return new Set(Object.keys(entries).map((path) => roleOfPath(state, path)));
}
