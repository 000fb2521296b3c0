// Commits a proposal: the root with enough signatures becomes the repository's root, and the new keys sign the roles that
// it changed in the same step. Everything is verified before the first write, and every step can be repeated after a crash.
// Order: new targets and snapshot, which no file lists yet; then root and timestamp together; then the committer's own copy
// of the root.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import { onlineRoles, type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Clock } from '../../platform/time/clock.js';
import { type KeyDirectory, requireKeysOf, signingAuthorityOf } from '../keys/key-directory.js';
import type { Signer } from '../keys/signer.js';
import type { LaterRole } from '../repository/live-files.js';
import { anchorName, readOwnRoot, withoutWaiting } from '../repository/repository-state.js';
import { type LockWait, type RepositoryWriter, withRepository } from '../repository/repository-writer.js';
import { signOnline } from '../signing/online-signing.js';
import { verifyAsClient } from '../signing/self-check.js';
import { writeRole } from '../signing/sign-role.js';
import { type ClockCheck, requireReliableClock, type SigningClock } from '../signing/signing-time.js';
import { type CommitPlan, type PlanOptions, planCommit } from './commit-plan.js';
import { requireConfirmedTeams } from './confirm-teams.js';
import { isComplete, labelOf, listMissingSigners } from './proposal-signatures.js';

export interface CommitOptions extends PlanOptions, LockWait {
  /** `accepted`: hosts may refuse the roles with missing new keys until the key owner signs. */
  readonly unsignedRoles: 'refused' | 'accepted';
  readonly durableFs: DurableFs;
  readonly clockCheck?: ClockCheck | undefined;
}

export interface CommitResult {
  readonly kind: 'committed' | 'completed' | 'unchanged';
  readonly plan: CommitPlan;
  /** The roles that new keys signed, with their versions. */
  readonly signed: Partial<Readonly<Record<LaterRole, number>>>;
  /** The roles that hosts refuse until they are signed. */
  readonly waiting: readonly LaterRole[];
  /** An expired role. Until it is signed, hosts accept nothing new, whatever the root contains. */
  readonly expired?: string;
}

/**
 * Writes the proposed root, signs the roles of its new keys, and saves the publisher's copy of the root. Takes the lock.
 * @returns `committed`: the root is new. `completed`: an earlier run wrote it, and this run wrote the rest. `unchanged`:
 *   nothing was left to write. `waiting` has the roles without available keys; it is empty if all signed
 * @throws WritError PROPOSAL_BASE, ROOT_CHANGE_REFUSED, METADATA_EXPIRED, SIGNATURE_THRESHOLD if signers are missing,
 *   TEAM_KEY_UNCONFIRMED, KEYS_MISSING for missing new keys unless `unsignedRoles` is `accepted`; KEY_UNREADABLE, PASSPHRASE_*,
 *   CLOCK_UNSURE, REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing was written), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function commitRoot(options: CommitOptions): Promise<CommitResult> {
  return withRepository({ ...options, holder: 'root commit' }, async (writer) => {
    const plan = planCommit(options);
    requireCommittable(plan, options.unsignedRoles);
    const clock = plan.toSign.length === 0 ? options.clock : await requireReliableClock(options, plan.state);
    const signers = await openSigners(plan, options.keys);
    const expired = await requirePublishedVerifies(plan, clock);
    const signed = await writeAll(writer, plan, signers, clock);
    const kept = plan.missing.length === 0 && saveAnchor(plan, options);
    const wrote = !plan.written || Object.keys(signed).length > 0 || kept;
    return {
      kind: !wrote ? 'unchanged' : plan.written ? 'completed' : 'committed',
      plan,
      signed,
      waiting: plan.toSign.filter((role) => signed[role] === undefined),
      ...(expired === undefined ? {} : { expired }),
    };
  });
}

/**
 * @throws WritError SIGNATURE_THRESHOLD naming the missing signers, TEAM_KEY_UNCONFIRMED, KEYS_MISSING naming the roles
 *   that hosts would refuse
 */
export function requireCommittable(plan: CommitPlan, unsignedRoles: CommitOptions['unsignedRoles']): void {
  if (!plan.written && !isComplete(plan.tallies)) {
    const missing = listMissingSigners(plan.tallies);
    const names = missing.map(({ count, of }) => {
      return `${count} of ${of.map((key) => labelOf(plan.tallies, key)).join(', ')}`;
    });
    throw new WritError('SIGNATURE_THRESHOLD', `the proposal still needs ${names.join(' and ')}`, {
      facts: { role: 'root', missing },
      hint: 'Send it to them: writ sign FILE --key KEY.',
    });
  }
  requireConfirmedTeams(plan.unconfirmedTeams, plan.written);
  if (plan.missing.length === 0 || unsignedRoles === 'accepted') return;
  const message = `the new keys of ${plan.missing.join(' and ')} are missing: hosts would refuse the current metadata`;
  throw new WritError('KEYS_MISSING', message, {
    facts: { roles: plan.missing, unvouched: plan.unvouched },
    hint: 'Provide them with --keys, or give --leave-unsigned and let their holder sign at once.',
  });
}

type RoleSigners = Partial<Readonly<Record<LaterRole, readonly Signer[]>>>;

/**
 * Opens no keys where the targets key is missing, because hosts would refuse a new snapshot and timestamp like the old
 * ones.
 */
async function openSigners(plan: CommitPlan, keys: KeyDirectory | undefined): Promise<RoleSigners> {
  if (keys === undefined || plan.missing.includes('targets')) return {};
  const here = plan.toSign.filter((role) => !plan.missing.includes(role));
  const online = !plan.missing.includes('snapshot') && !plan.missing.includes('timestamp');
  const signers: [LaterRole, readonly Signer[]][] = [];
  for (const role of here.filter((one) => one === 'targets' || online)) {
    signers.push([role, await requireKeysOf(keys, signingAuthorityOf(plan.root.signed, role))]);
  }
  return Object.fromEntries(signers);
}

/**
 * Where no role is signed again, the published files must verify under the next root.
 * @returns the role that has expired, which is not a reason to refuse the root
 * @throws WritError REPOSITORY_INVALID for every other refusal
 */
async function requirePublishedVerifies(plan: CommitPlan, clock: Clock): Promise<string | undefined> {
  if (plan.toSign.length > 0) return undefined;
  try {
    const next = plan.written ? undefined : plan.root;
    // Only the published files, without newer targets that wait for the online keys.
    const state = withoutWaiting(plan.state);
    await verifyAsClient({ state, timestamp: state.live.timestamp.bytes, clock, next });
    return undefined;
  } catch (error) {
    if (!isWritError(error) || error.facts['clientCode'] !== 'METADATA_EXPIRED') throw error;
    const { role } = error.facts;
    if (role === 'root' || typeof role !== 'string') throw error;
    return role;
  }
}

async function writeAll(
  writer: RepositoryWriter,
  plan: CommitPlan,
  signers: RoleSigners,
  clock: SigningClock,
): Promise<CommitResult['signed']> {
  const write = (): void => {
    if (!plan.written) writer.writeMetadata('root', plan.root.signed.version, plan.root.bytes);
  };
  const targets = signers.targets && (await signTargets(writer, plan, signers.targets, clock));
  const signed = targets === undefined ? {} : { targets: targets.signed.version };
  const { snapshot, timestamp } = signers;
  if (timestamp === undefined) {
    write();
    return signed;
  }
  // Waiting targets are published only with a new snapshot.
  const before = snapshot === undefined ? withoutWaiting(plan.state) : plan.state;
  const state = { ...before, outdated: plan.unvouched, targets: targets ?? before.targets };
  const roles = onlineRoles.filter((role) => signers[role] !== undefined);
  const online = { snapshot: snapshot ?? [], timestamp };
  const next = { root: plan.root, write };
  const versions = await signOnline({ writer, state, signers: online, roles, clock, next });
  const own = snapshot === undefined ? {} : { snapshot: versions.snapshot };
  return { ...signed, ...own, timestamp: versions.timestamp };
}

/** Signs the same targets and delegations with the new keys. */
function signTargets(
  writer: RepositoryWriter,
  { state, root, unvouched }: CommitPlan,
  signers: readonly Signer[],
  clock: SigningClock,
): Promise<ParsedFile<'targets'>> {
  const { targets } = state;
  // Hosts forget the versions under a new snapshot or timestamp key, so the next version may restart.
  const next = { ...state, live: { ...state.live, root }, outdated: unvouched };
  return writeRole({ writer, state: next, role: 'targets', signers, clock }, targets.signed.targets, targets);
}

/** @returns true if the committer's copy of the root was updated */
function saveAnchor({ root }: CommitPlan, { keys, durableFs }: CommitOptions): boolean {
  if (keys === undefined || !fs.existsSync(keys.path)) return false;
  const own = readOwnRoot(keys.path);
  const before = own === undefined ? 0 : parseEnvelope(own, 'root').signed.version;
  if (before >= root.signed.version) return false;
  durableFs.writeFile('keys.root', join(keys.path, anchorName), root.bytes, 0o644);
  return true;
}
