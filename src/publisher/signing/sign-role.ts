// Signs the next version of a role that lists releases: the top-level targets or the role of a team. Decides the signers,
// the validity period and the members that the version before passes on. Hosts see the version with the next snapshot.
import { WritError } from '../../core/errors.js';
import { delegationAuthority, isVouched } from '../../core/tuf/metadata-checks.js';
import { beginsAgain, forgetsVersions, restartsTargets } from '../../core/tuf/metadata-version.js';
import { matchesPath } from '../../core/tuf/target-search.js';
import {
  type Delegations,
  type ParsedFile,
  parseEnvelope,
  type TargetFile,
} from '../../core/tuf/tuf-metadata.js';
import {
  hasAvailableKeys,
  type KeyDirectory,
  missingKeys,
  openKeysOf,
  type SigningAuthority,
  signingAuthorityOf,
} from '../keys/key-directory.js';
import { type Signer, signMetadata } from '../keys/signer.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import { type HandedOver, handedOverBy, isInForce, targetsListedBy } from '../repository/listing.js';
import { readValidityPeriods, targetsContent } from '../repository/metadata-content.js';
import type { RepositoryState } from '../repository/repository-state.js';
import type { RepositoryWriter } from '../repository/repository-writer.js';
import { lastSeenVersion, publishedVersion } from '../repository/version-restarts.js';
import type { SignedRole } from './online-signing.js';
import { describeSigningTime, type SigningClock } from './signing-time.js';

/** @returns the keys and threshold of a role that lists releases. @throws WritError ROLE_UNKNOWN */
export function findRoleHolder({ live, targets }: RepositoryState, role: string): SigningAuthority {
  if (role === 'targets') return signingAuthorityOf(live.root.signed, 'targets');
  const delegated = delegatedRolesOf(targets).find(({ name }) => name === role);
  if (delegated !== undefined) {
    return { name: role, keys: targets.signed.delegations?.keys ?? {}, role: delegated };
  }
  const known = ['targets', ...delegatedRolesOf(targets).map(({ name }) => name)];
  throw new WritError('ROLE_UNKNOWN', `the repository has no role ${role} that lists releases`, {
    facts: { role, known: known.slice(0, 50) },
  });
}

/**
 * Opens the keys of a role. Where the targets key is in the directory, the error names how a delegation of a thief ends.
 * @throws WritError ROLE_UNKNOWN, KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*
 */
export async function requireRoleSigners(
  keys: KeyDirectory,
  state: RepositoryState,
  role: string,
): Promise<readonly Signer[]> {
  const holder = findRoleHolder(state, role);
  const signers = await openKeysOf(keys, holder);
  if (signers !== undefined) return signers;
  const canDelegate = role !== 'targets' && hasAvailableKeys(keys, findRoleHolder(state, 'targets'));
  throw missingKeys(keys, holder, canDelegate ? endHint(role) : undefined);
}

function endHint(role: string): string {
  return `Ask the holder of its keys to run the command. If ${role} is not a team of yours, \`writ delegate ${role} --remove --hand-over\` returns its bundles to the targets: then run the command again.`;
}

/** Milliseconds from a delegated role's signing to its expiry, by role; `writ.livesMs` of the delegating targets. */
export function readDelegatedValidityMs({ signed }: ParsedFile<'targets'>): Readonly<Record<string, number>> {
  const { writ } = signed as { readonly writ?: { readonly livesMs?: Readonly<Record<string, number>> } };
  return writ?.livesMs ?? {};
}

/** @returns milliseconds from signing to expiry */
export function readRoleValidityMs({ live, targets }: RepositoryState, role: string): number {
  const delegated = readDelegatedValidityMs(targets);
  const own = role !== 'targets' && Object.hasOwn(delegated, role) ? delegated[role] : undefined;
  return typeof own === 'number' && own >= 1000 ? own : readValidityPeriods(live.root.signed).targets;
}

interface RoleSigning {
  readonly writer: RepositoryWriter;
  readonly state: RepositoryState;
  readonly role: string;
  /** By path; each replaces the entry of the role at its path. Empty: only version and expiry change. */
  readonly entries: Readonly<Record<string, TargetFile>>;
  readonly signers: readonly Signer[];
  readonly clock: SigningClock;
}

/**
 * Signs and writes the next version of a role.
 * @returns the state with the new file as the role's newest
 * @throws WritError SIGNATURE_DISAGREEMENT, REPOSITORY_INVALID, DISK_*
 */
export async function signRole(signing: RoleSigning): Promise<RepositoryState> {
  const { state, role, entries } = signing;
  requireKnownEntries(state, role);
  const before = findNewestFile(state, role);
  const listed = targetsListedBy(state, role);
  const writMembers = role === 'targets' ? { handedOver: listPendingHandOvers(state) } : {};
  const file = await writeRole(signing, { ...listed, ...entries }, before, writMembers);
  if (role === 'targets') return { ...state, targets: file };
  return { ...state, delegated: new Map([...state.delegated, [role, file]]) };
}

/**
 * Signs and writes the next version of the top-level targets, with other delegations.
 * @returns the state with the new targets, and of the delegated files those that the new delegations authorise
 * @throws as signRole
 */
export async function signDelegations(
  signing: RoleSigning & {
    readonly plan: {
      readonly targets: Readonly<Record<string, TargetFile>>;
      readonly delegations: Delegations;
      /** Members of `writ`. */
      readonly writMembers: object;
    };
  },
): Promise<RepositoryState> {
  const { state, plan } = signing;
  const { targets } = state;
  const before = { ...targets, signed: { ...targets.signed, delegations: plan.delegations } };
  const file = await writeRole(signing, plan.targets, before, plan.writMembers);
  const isKept = ([role, one]: [string, ParsedFile<'targets'>]): boolean =>
    isAuthorisedFile(file, role, one) ||
    (state.live.delegated.get(role) === one && isSignedFor(file, role, one));
  const delegated = [...state.delegated].filter(isKept);
  return { ...state, targets: file, delegated: new Map(delegated) };
}

/**
 * Signs and writes the next version of a role with the given targets.
 * @param before the version that passes its other members on. @param writMembers further members of `writ`
 * @throws as signRole
 */
export async function writeRole(
  { writer, state, role, signers, clock }: Omit<RoleSigning, 'entries'>,
  targets: Readonly<Record<string, TargetFile>>,
  before: ParsedFile<'targets'> | undefined,
  writMembers: object = {},
): Promise<ParsedFile<'targets'>> {
  const version = writer.nextVersion(role, findLiveVersion(state, role));
  const edition = {
    version,
    ...describeSigningTime(state, clock),
    validityMs: readRoleValidityMs(state, role),
  };
  const bytes = await signMetadata(targetsContent(edition, targets, before?.signed, writMembers), signers);
  // A file that Writ itself cannot parse must not be written.
  const file = parseEnvelope(bytes, 'targets', role);
  requireAccepted(state, role, file);
  writer.writeMetadata(role, version, bytes);
  return file;
}

/** Refuses a file of replaced keys, because the keys were chosen before the lock was taken. */
function requireAccepted(state: RepositoryState, role: string, file: ParsedFile<'targets'>): void {
  const { keys, role: roleKeys } = findRoleHolder(state, role);
  const name = role === 'targets' ? 'root' : 'targets';
  const version = role === 'targets' ? state.live.root.signed.version : state.targets.signed.version;
  if (isVouched(file, { name, version, keys, role: roleKeys })) return;
  throw new WritError('REPOSITORY_INVALID', `the keys of ${role} changed meanwhile; nothing was written`, {
    facts: { role },
    hint: 'Run the command again.',
  });
}

/** @returns the newest file of a role that lists releases: published or waiting */
export function findNewestFile(
  { targets, delegated, restarted }: RepositoryState,
  role: string,
): ParsedFile<'targets'> | undefined {
  return role === 'targets' ? targets : (delegated.get(role) ?? restarted.get(role));
}

/** @returns the role with its newest version; 0 before its first */
export function describeNewestVersion(state: RepositoryState, role: string): SignedRole {
  return { role, version: findNewestFile(state, role)?.signed.version ?? 0 };
}

/**
 * @returns the version of a role that the next one follows: hosts see it, or it is the last one below a restart of the versions
 * @throws WritError REPOSITORY_INVALID for a team with versions that begin again with the next snapshot
 */
export function findLiveVersion({ live, outdated, restarts }: RepositoryState, role: string): number {
  const { targets, snapshot } = live;
  const { version } = targets.signed;
  if (role === 'targets') return restartsTargets(outdated, version) ? 0 : version;
  const { meta } = snapshot.signed;
  const published = publishedVersion({ meta, restarts }, role);
  if (!forgetsVersions(outdated) || !beginsAgain(published)) return published;
  // The next snapshot records the version after which the files of the team count: a file signed now would not.
  throw new WritError('REPOSITORY_INVALID', `the versions of ${role} begin again with the next snapshot`, {
    facts: { role, version: published },
    hint: 'Run `writ refresh` with the new keys of snapshot and timestamp first.',
  });
}

/**
 * Without this check a version after a lost or damaged file would not list its releases, and would use their serials again.
 * @throws WritError REPOSITORY_INVALID where the listed file of a team is missing or does not verify
 */
export function requireKnownEntries(state: RepositoryState, role: string): void {
  const { live, targets, restarts } = state;
  if (role === 'targets' || findNewestFile(state, role) !== undefined) return;
  const version = lastSeenVersion({ meta: live.snapshot.signed.meta, restarts }, role);
  const handedOver = handedOverBy(targets);
  const known = Object.hasOwn(handedOver, role) ? (handedOver[role]?.after ?? 0) : 0;
  if (version <= known) return;
  throw new WritError('REPOSITORY_INVALID', `${version}.${role}.json is missing or does not verify`, {
    facts: { role, version },
    hint: 'Restore the file from a copy of the repository.',
  });
}

/**
 * A hand-over stays while the newer file of its role waits, because a later key change may leave that file out.
 * @returns the releases that were handed over to roles of which hosts have not seen a newer version, by role
 */
function listPendingHandOvers({ targets, live }: RepositoryState): HandedOver {
  const all = Object.entries(handedOverBy(targets));
  return Object.fromEntries(all.filter(([role, handOver]) => isInForce(handOver, live.delegated.get(role))));
}

/** @returns whether a file of a role is signed by the keys of its delegation and lists only the delegated paths */
export function isAuthorisedFile(
  targets: ParsedFile<'targets'>,
  role: string,
  file: ParsedFile<'targets'>,
): boolean {
  const delegated = delegatedRolesOf(targets).find(({ name }) => name === role);
  if (delegated === undefined) return false;
  const ownPaths = Object.keys(file.signed.targets).every((path) => matchesPath(delegated, path));
  return ownPaths && isSignedFor(targets, role, file);
}

/** @returns whether a file of a role is signed by the keys of its delegation: hosts then ignore entries outside the paths */
function isSignedFor(targets: ParsedFile<'targets'>, role: string, file: ParsedFile<'targets'>): boolean {
  const delegated = delegatedRolesOf(targets).find(({ name }) => name === role);
  return delegated !== undefined && isVouched(file, delegationAuthority(targets, delegated));
}
