// `writ sign --role`: signs a role that lists releases again, before it expires: a new version and a new expiry, and
// nothing else. Also the first file of a team, with what was handed over to it.
import { requireKeysOf } from '../keys/key-directory.js';
import { targetsListedBy } from '../repository/listing.js';
import { layoutOf, versionsOnDisk } from '../repository/repository-layout.js';
import { type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import { withRepository } from '../repository/repository-writer.js';
import { findOnlineSigners } from './online-signing.js';
import { type ChangeOptions, readForChange, type SignedChange, takeLive } from './sign-change.js';
import { holderOfRole, lifeOfRole, liveVersionOf, newestFileOf, signedRole, signRole } from './sign-role.js';

interface ResignedRole {
  readonly role: string;
  /** Absent before its first file. */
  readonly before?: { readonly version: number; readonly expiresMs: number };
  readonly expiresMs: number;
  /** How many releases it lists. */
  readonly releases: number;
}

/** With the version that was signed, or would be. */
export type VersionedRole = ResignedRole & { readonly version: number };

export type ResignRoleResult = SignedChange<VersionedRole>;

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
    const before = await readForChange(writer, online, options);
    report.begin('sign', role);
    const state = await signRole({ writer, state: before, role, entries: {}, signers, clock });
    const done = { ...describe(before, role, clock.nowMs()), ...signedRole(state, role) };
    return takeLive({ writer, state, online, options }, done);
  });
}

/**
 * @returns what resignRole would make of the role, and its next version; no key is opened and nothing is written
 * @throws WritError ROLE_UNKNOWN, REPOSITORY_INVALID
 */
export function previewResign(role: string, { repository, keys, clock }: ChangeOptions): VersionedRole {
  const layout = layoutOf(repository);
  const state = readRepositoryState(layout, keys.path);
  holderOfRole(state, role);
  const highest = Math.max(0, ...versionsOnDisk(layout, role), liveVersionOf(state, role));
  return { ...describe(state, role, clock.nowMs()), version: highest + 1 };
}

function describe(state: RepositoryState, role: string, nowMs: number): ResignedRole {
  const file = newestFileOf(state, role);
  return {
    role,
    ...(file === undefined ? {} : { before: { version: file.signed.version, expiresMs: file.expiresAtMs } }),
    expiresMs: nowMs + lifeOfRole(state, role),
    releases: Object.keys(targetsListedBy(state, role)).length,
  };
}
