// `writ sign --role`: signs a role that lists releases anew, before it expires: a new version and a new expiry, and
// nothing else. Also the first file of a team, with what was handed over to it.
import type { OnlineRole } from '../core/tuf-metadata.js';
import type { ChangeOptions } from './change-targets.js';
import { versionOfRole } from './change-targets.js';
import { requireKeysOf } from './key-directory.js';
import { listingsOf } from './listing.js';
import { findOnlineSigners, type SignedVersions, signOnline } from './online-signing.js';
import { layoutOf, versionsOnDisk } from './repository-layout.js';
import { type RepositoryState, readRepositoryState } from './repository-state.js';
import { withRepository } from './repository-writer.js';
import { holderOfRole, lifeOfRole, liveVersionOf, signRole } from './sign-role.js';
import { vetWaiting } from './vet-waiting.js';

export interface ResignedRole {
  readonly role: string;
  /** Absent before its first file. */
  readonly before?: { readonly version: number; readonly expiresMs: number };
  readonly expiresMs: number;
  /** How many releases it lists. */
  readonly releases: number;
}

export type ResignRoleResult =
  | (ResignedRole & { readonly kind: 'live'; readonly version: number; readonly versions: SignedVersions })
  | (ResignedRole & {
      readonly kind: 'waiting';
      readonly version: number;
      readonly missing: readonly OnlineRole[];
    });

/**
 * Signs `targets`, or a role that they delegate to.
 * @throws WritError ROLE_UNKNOWN, KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, REPOSITORY_LOCKED, REPOSITORY_INVALID
 *   (nothing went live), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function resignRole(role: string, options: ChangeOptions): Promise<ResignRoleResult> {
  const { keys, clock, report } = options;
  const seen = readRepositoryState(layoutOf(options.repository), keys.path);
  const signers = await requireKeysOf(keys, holderOfRole(seen, role));
  const online = await findOnlineSigners(keys, seen);
  return withRepository(options, async (writer) => {
    const read = readRepositoryState(writer.layout, keys.path);
    const before = 'signers' in online ? await vetWaiting(read, clock) : read;
    report.begin('sign', role);
    const state = await signRole({ writer, state: before, role, entries: {}, signers, clock });
    const done = { ...describe(before, role, clock.nowMs()), version: versionOfRole(state, role) };
    if (!('signers' in online)) return { ...done, kind: 'waiting', missing: online.missing };
    report.begin('sign', 'snapshot, timestamp');
    const versions = await signOnline({ writer, state, signers: online.signers, clock });
    return { ...done, kind: 'live', versions };
  });
}

/**
 * @returns what resignRole would make of the role, and its next version; no key is opened and nothing is written
 * @throws WritError ROLE_UNKNOWN, REPOSITORY_INVALID
 */
export function previewResign(
  role: string,
  { repository, keys, clock }: ChangeOptions,
): ResignedRole & { readonly version: number } {
  const layout = layoutOf(repository);
  const state = readRepositoryState(layout, keys.path);
  holderOfRole(state, role);
  const highest = Math.max(0, ...versionsOnDisk(layout, role), liveVersionOf(state, role));
  return { ...describe(state, role, clock.nowMs()), version: highest + 1 };
}

function describe(state: RepositoryState, role: string, nowMs: number): ResignedRole {
  const file = role === 'targets' ? state.targets : state.delegated.get(role);
  const listed = listingsOf(state).find((listing) => listing.role === role)?.targets ?? {};
  return {
    role,
    ...(file === undefined ? {} : { before: { version: file.signed.version, expiresMs: file.expiresAtMs } }),
    expiresMs: nowMs + lifeOfRole(state, role),
    releases: Object.keys(listed).length,
  };
}
