// Commits a proposal: the root that enough people signed becomes the repository's, and roles whose keys it changed
// are signed by the new ones in the same step. Verified before anything is written; every step can be done again
// after a crash. Order: new targets and snapshot, which nothing names yet; then root and timestamp, side by side;
// then the committer's own copy of the root.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isWritError, WritError } from '../../core/errors.js';
import { onlineRoles, type ParsedFile, parseEnvelope } from '../../core/tuf/tuf-metadata.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Clock } from '../../platform/time/clock.js';
import { holderOf, type KeyDirectory, requireKeysOf } from '../keys/key-directory.js';
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
import { isComplete, labelOf, whoIsMissing } from './proposal-signatures.js';

export interface CommitOptions extends PlanOptions, LockWait {
  /** `accepted`: hosts may refuse the roles whose new keys are not here until their holder signs. */
  readonly unsignedRoles: 'refused' | 'accepted';
  readonly durableFs: DurableFs;
  readonly clockCheck?: ClockCheck | undefined;
}

export interface CommitResult {
  readonly kind: 'committed' | 'completed' | 'unchanged';
  readonly plan: CommitPlan;
  /** What was signed by new keys, with its version. */
  readonly signed: Partial<Readonly<Record<LaterRole, number>>>;
  /** Hosts refuse these until they are signed. */
  readonly waiting: readonly LaterRole[];
  /** A role that has expired: hosts accept nothing new, whatever the root says. */
  readonly expired?: string;
}

/**
 * @throws WritError as planCommit; SIGNATURE_THRESHOLD, TEAM_KEY_UNCONFIRMED, KEYS_MISSING for new keys that are not here, REPOSITORY_LOCKED,
 *   REPOSITORY_INVALID (nothing was written), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function commitRoot(options: CommitOptions): Promise<CommitResult> {
  return withRepository({ ...options, holder: 'root commit' }, async (writer) => {
    const plan = planCommit(options);
    requireCommittable(plan, options.unsignedRoles);
    const clock = plan.toSign.length === 0 ? options.clock : await requireReliableClock(options, plan.state);
    const signers = await openSigners(plan, options.keys);
    const expired = await requireLive(plan, clock);
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

/** @throws WritError SIGNATURE_THRESHOLD naming who is missing, TEAM_KEY_UNCONFIRMED, KEYS_MISSING naming what would break */
export function requireCommittable(plan: CommitPlan, unsignedRoles: CommitOptions['unsignedRoles']): void {
  if (!plan.written && !isComplete(plan.tallies)) {
    const missing = whoIsMissing(plan.tallies);
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

/** Without the targets key, a new snapshot and timestamp would be as useless to hosts as the old ones. */
async function openSigners(plan: CommitPlan, keys: KeyDirectory | undefined): Promise<RoleSigners> {
  if (keys === undefined || plan.missing.includes('targets')) return {};
  const here = plan.toSign.filter((role) => !plan.missing.includes(role));
  const online = !plan.missing.includes('snapshot') && !plan.missing.includes('timestamp');
  const signers: [LaterRole, readonly Signer[]][] = [];
  for (const role of here.filter((one) => one === 'targets' || online)) {
    signers.push([role, await requireKeysOf(keys, holderOf(plan.root.signed, role))]);
  }
  return Object.fromEntries(signers);
}

/**
 * With nothing to sign again, what is live must go on working under the next root.
 * @returns the role that has expired, which is no reason to keep a root back
 */
async function requireLive(plan: CommitPlan, clock: Clock): Promise<string | undefined> {
  if (plan.toSign.length > 0) return undefined;
  try {
    const next = plan.written ? undefined : plan.root;
    // Of what is live: newer targets that wait for the online keys are not in it.
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
  // Newer targets that wait go live with a new snapshot only.
  const before = snapshot === undefined ? withoutWaiting(plan.state) : plan.state;
  const state = { ...before, outdated: plan.unvouched, targets: targets ?? before.targets };
  const roles = onlineRoles.filter((role) => signers[role] !== undefined);
  const online = { snapshot: snapshot ?? [], timestamp };
  const next = { root: plan.root, write };
  const versions = await signOnline({ writer, state, signers: online, roles, clock, next });
  const own = snapshot === undefined ? {} : { snapshot: versions.snapshot };
  return { ...signed, ...own, timestamp: versions.timestamp };
}

/** The same targets and delegations under the new keys. */
function signTargets(
  writer: RepositoryWriter,
  { state, root, unvouched }: CommitPlan,
  signers: readonly Signer[],
  clock: SigningClock,
): Promise<ParsedFile<'targets'>> {
  const { targets } = state;
  // A new snapshot or timestamp key makes hosts forget the versions.
  const next = { ...state, live: { ...state.live, root }, outdated: unvouched };
  return writeRole({ writer, state: next, role: 'targets', signers, clock }, targets.signed.targets, targets);
}

/** @returns true if the committer's copy of the root was another one */
function saveAnchor({ root }: CommitPlan, { keys, durableFs }: CommitOptions): boolean {
  if (keys === undefined || !fs.existsSync(keys.path)) return false;
  const own = readOwnRoot(keys.path);
  const before = own === undefined ? 0 : parseEnvelope(own, 'root').signed.version;
  if (before >= root.signed.version) return false;
  durableFs.writeFile('keys.root', join(keys.path, anchorName), root.bytes, 0o644);
  return true;
}
