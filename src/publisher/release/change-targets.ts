// Changes the listed releases without a new tree: new entries, signed by the roles that list their paths. `writ withdraw`
// and `writ promote` decide on the entries; sign-change publishes them.
import { targetPath } from '../../core/names.js';
import type { DeltaInfo } from '../../core/release/deltas.js';
import { encodeReleaseInfo, type ReleaseInfo } from '../../core/release/release.js';
import type { TargetFile } from '../../core/tuf/tuf-metadata.js';
import type { Signer } from '../keys/signer.js';
import { roleOfPath } from '../repository/listing.js';
import type { FilePlace } from '../repository/repository-layout.js';
import { isWaiting, type RepositoryState } from '../repository/repository-state.js';
import type { SignedRole } from '../signing/online-signing.js';
import { type ChangeResult, changeRepository, readStateBeforeLock } from '../signing/sign-change.js';
import { describeNewestVersion, requireRoleSigners, signRole } from '../signing/sign-role.js';
import { type MoveOptions, makeMovedDeltas, type ReleaseMove } from './moved-deltas.js';

export interface TargetsChange<Info> {
  /** New heads of channels. The role that lists each path signs it. */
  readonly moves: readonly ReleaseMove[];
  /** Files of releases that must also exist under the name of another channel. */
  readonly copies: readonly { readonly from: FilePlace; readonly channel: string }[];
  /** @param heads the heads of the moves in their order, with their new deltas. @returns the description for the caller */
  createInfo(heads: readonly ReleaseInfo[]): Info;
}

/** Undefined when nothing changes. */
type PlannedChange<Info> = TargetsChange<Info> | undefined;

interface ChangedTargets<Info> {
  /** Absent when nothing changed and only waiting files were published. */
  readonly info?: Info | undefined;
  readonly signed: readonly SignedRole[];
  /** The deltas that were made for the new heads. */
  readonly deltas: readonly DeltaInfo[];
}

export type TargetsResult<Info> = ChangeResult<ChangedTargets<Info>>;

/**
 * Signs and publishes new heads of channels, under the lock of the repository. Makes their deltas first.
 * @param plan called twice: before a key is opened, and again under the lock. Undefined: nothing changes
 * @returns `nothing-new`: nothing was written, because nothing changed and no file waited. `live`: hosts see the change.
 *   `waiting`: it is signed, and the online keys in `missing` must still sign. `signed`: the roles with new versions; `info` is
 *   absent if only waiting files were published
 * @throws WritError KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, CLOCK_UNSURE, REPOSITORY_LOCKED, REPOSITORY_INVALID,
 *   SIGNATURE_DISAGREEMENT, DISK_*, and errors of `plan`
 */
export async function changeTargets<Info>(
  options: MoveOptions,
  plan: (state: RepositoryState) => PlannedChange<Info> | Promise<PlannedChange<Info>>,
): Promise<TargetsResult<Info>> {
  const { keys, report } = options;
  const seen = readStateBeforeLock(options);
  const first = await plan(seen);
  // Returns before a key is opened or a lock is taken, so that an unchanged repository costs no passphrase and no write.
  if (first === undefined && !isWaiting(seen)) return { kind: 'nothing-new' };
  const opened = new Map<string, readonly Signer[]>();
  for (const role of rolesOf(seen, first?.moves)) {
    opened.set(role, await requireRoleSigners(keys, seen, role));
  }
  return changeRepository<ChangedTargets<Info>>(options, seen, async (writer, before, clock) => {
    const again = await plan(before);
    const signed: SignedRole[] = [];
    let state = before;
    for (const { from, channel } of again?.copies ?? []) writer.copyFile(from, channel);
    const moves: ReleaseMove[] = [];
    const newDeltas: DeltaInfo[] = [];
    for (const move of again?.moves ?? []) {
      const made = await makeMovedDeltas(writer, before, move, options);
      newDeltas.push(...made);
      const deltas = [...made, ...(move.release.deltas ?? [])];
      moves.push(deltas.length === 0 ? move : { ...move, release: { ...move.release, deltas } });
    }
    for (const role of rolesOf(before, moves)) {
      report.begin('sign', role);
      const own = moves.filter((move) => roleOfPath(before, pathOfMove(move)) === role);
      const entries = Object.fromEntries(own.map((move) => [pathOfMove(move), entryOfMove(move)]));
      state = await signRole({ writer, state, role, entries, signers: opened.get(role) ?? [], clock });
      signed.push(describeNewestVersion(state, role));
    }
    const info = again?.createInfo(moves.map(({ release }) => release));
    return { state, done: { info, signed, deltas: newDeltas } };
  });
}

function rolesOf(state: RepositoryState, moves: readonly ReleaseMove[] = []): ReadonlySet<string> {
  return new Set(moves.map((move) => roleOfPath(state, pathOfMove(move))));
}

function pathOfMove({ release }: ReleaseMove): string {
  return targetPath(release.bundle, release.channel);
}

function entryOfMove({ from, release }: ReleaseMove): TargetFile {
  return { ...from.file, custom: { writ: encodeReleaseInfo(release) } };
}
