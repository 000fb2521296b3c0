// Re-signs a role that lists releases, for `writ sign --role`: only version and expiry change. Also signs the first file of
// a team, with the releases that were handed over to it.
import { hasAvailableKeys, missingKeys, requireKeysOf } from '../keys/key-directory.js';
import { markListedReleases, targetsListedBy } from '../repository/listing.js';
import { metadataName, nextVersionOf, versionsOnDisk } from '../repository/repository-layout.js';
import type { RepositoryState } from '../repository/repository-state.js';
import {
  type ChangeOptions,
  changeRepository,
  readStateBeforeLock,
  type SignedChange,
} from './sign-change.js';
import {
  describeNewestVersion,
  findLiveVersion,
  findNewestFile,
  findRoleHolder,
  readRoleValidityMs,
  signRole,
} from './sign-role.js';
import { chooseSigningTimeMs } from './signing-time.js';

/** The description of a role, with the version that was signed or that would be signed. */
export type VersionedRole = ReturnType<typeof describe> & { readonly version: number };

export type ResignRoleResult = SignedChange<VersionedRole>;

/**
 * Signs `targets`, or a role that they delegate to.
 * @throws WritError ROLE_UNKNOWN, KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, REPOSITORY_LOCKED, REPOSITORY_INVALID
 *   (nothing was published), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function resignRole(role: string, options: ChangeOptions): Promise<ResignRoleResult> {
  const { keys, report } = options;
  const seen = readStateBeforeLock(options);
  const signers = await requireKeysOf(keys, findRoleHolder(seen, role));
  return changeRepository(options, seen, async (writer, before, clock) => {
    report.begin('sign', role);
    const state = await signRole({ writer, state: before, role, entries: {}, signers, clock });
    const done = { ...describe(before, role, clock.nowMs()), ...describeNewestVersion(state, role) };
    return { state, done };
  });
}

/**
 * Opens no key and writes nothing.
 * @returns the description that resignRole would return
 * @throws WritError ROLE_UNKNOWN, KEYS_MISSING, REPOSITORY_INVALID
 */
export function previewResign(role: string, options: ChangeOptions): VersionedRole {
  const state = readStateBeforeLock(options);
  const holder = findRoleHolder(state, role);
  if (!hasAvailableKeys(options.keys, holder)) throw missingKeys(options.keys, holder);
  const version = nextVersionOf(state.layout, role, findLiveVersion(state, role));
  return { ...describe(state, role, options.clock.nowMs()), version };
}

function describe(state: RepositoryState, role: string, nowMs: number) {
  const file = findNewestFile(state, role);
  const listed = targetsListedBy(state, role);
  return {
    role,
    /** Absent before its first file. */
    before: file && { version: file.signed.version, expiresMs: file.expiresAtMs },
    expiresMs: chooseSigningTimeMs(state, nowMs) + readRoleValidityMs(state, role),
    /** How many releases it lists. */
    releases: Object.keys(listed).length,
    /** Those that are well-formed, each with `isLive`: hosts see it now. */
    listed: markListedReleases(state, role, listed),
    /** Newer files of the role that this version leaves out. */
    leftOut: versionsOnDisk(state.layout, role).flatMap((version) =>
      state.ignored.filter(({ name }) => name === metadataName(role, version)),
    ),
  };
}
