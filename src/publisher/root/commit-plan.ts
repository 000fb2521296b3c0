// Plans the commit of a proposal from the repository on disk: whether the proposal is complete, which roles need a
// signature of new keys at once, and whether those keys are available. Reads only. The commit plans again under the lock.
import { isVouchedByRoot, requireFresh } from '../../core/tuf/metadata-checks.js';
import { trustFirstRoot, trustNextRoot } from '../../core/tuf/trusted-set.js';
import { type ParsedFile, parseEnvelope, type RootSigned } from '../../core/tuf/tuf-metadata.js';
import type { Clock } from '../../platform/time/clock.js';
import { hasAvailableKeys, type KeyDirectory, signingAuthorityOf } from '../keys/key-directory.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import type { LaterRole, MissingFiles } from '../repository/live-files.js';
import { layoutOf } from '../repository/repository-layout.js';
import { type RepositoryState, readRepositoryState, readRoots } from '../repository/repository-state.js';
import { listUnconfirmedTeams, removesTargetsKey, type TeamKeys } from './confirm-teams.js';
import { type Proposal, rootDigest, trustBase, wrongBase } from './proposal-file.js';
import { isComplete, tallySignatures, validSignatures, withSignatures } from './proposal-signatures.js';
import { judgeRoot, requireAllowedChange } from './root-rules.js';

export type CommitPlan = ReturnType<typeof planCommit>;

export interface PlanOptions {
  readonly repository: string;
  /**
   * The committer's keys, also those of roles that the root changes, and its copy of the root. Without them, the
   * repository's first root is trusted.
   */
  readonly keys?: KeyDirectory | undefined;
  readonly proposal: Proposal;
  readonly clock: Clock;
  /** Sign waiting targets too, although the next root does not list their keys; false by default. */
  readonly shouldIncludeWaiting?: boolean | undefined;
  /** `refused` by default. */
  readonly missingFiles?: MissingFiles | undefined;
  /** Needed for each team where the root removes a targets key. */
  readonly teamKeys?: TeamKeys | undefined;
}

/**
 * @returns the next root as the repository will have it; whether an earlier run has already written exactly this root; the
 *   repository state under the current root; and the roles to sign
 * @throws WritError PROPOSAL_BASE, ROOT_CHANGE_REFUSED, SIGNATURE_THRESHOLD when signers are missing, METADATA_EXPIRED,
 *   REPOSITORY_INVALID
 */
export function planCommit(options: PlanOptions) {
  const { repository, keys, proposal, clock } = options;
  const layout = layoutOf(repository);
  const fromScratch = readRoots(layout).roots;
  const base = baseOf(proposal, fromScratch);
  if (keys !== undefined) requireLinked(proposal, readRoots(layout, keys.path));
  requireAllowedChange(judgeRoot(base.signed, proposal.root.signed), { danger: 'accepted' });
  requireFresh(proposal.root, clock.nowMs());
  const trusted = { base, proposal };
  const tallies = tallySignatures(trusted);
  const complete = withSignatures(proposal, validSignatures(trusted));
  const root = parseEnvelope(complete.root.bytes, 'root');
  const written = fromScratch.at(-1)?.signed.version === root.signed.version;
  // Verifies both thresholds with the code of a host. The tallies are only for people.
  if (isComplete(tallies)) trustNextRoot(trustFirstRoot(base.bytes), root.bytes);
  // Attack: a thief of the replaced key signs waiting targets.
  const { shouldIncludeWaiting, missingFiles } = options;
  const reading = {
    outdatedTargets: 'accepted',
    nextRoot: root,
    shouldIncludeWaiting,
    missingFiles,
  } as const;
  const state = readRepositoryState(layout, keys?.path, reading);
  const roles = planRoles(state, root.signed, options);
  // The teams are confirmed without a new targets key too. The old key signs nothing after the commit, so that a wrong team
  // key could not be corrected.
  const isSigning = !roles.missing.includes('targets') && roles.unvouched.includes('targets');
  const isVouching = !written || isSigning;
  const teams =
    isVouching && removesTargetsKey(base.signed, root.signed) ? delegatedRolesOf(state.targets) : [];
  const unconfirmedTeams = listUnconfirmedTeams(teams, options.teamKeys);
  return { base, proposal: complete, root, tallies, state, written, unconfirmedTeams, ...roles };
}

/** @returns the root that the proposed one follows, as the repository has it. @throws WritError PROPOSAL_BASE */
function baseOf(proposal: Proposal, roots: readonly ParsedFile<'root'>[]): ParsedFile<'root'> {
  const { version } = proposal.root.signed;
  const newest = roots.at(-1);
  const base = roots.find((root) => root.signed.version === version - 1);
  const taken = roots.find((root) => root.signed.version === version);
  if (taken !== undefined && rootDigest(taken) !== rootDigest(proposal.root)) {
    throw wrongBase(`the repository already has a different root v${version}`, { version });
  }
  if (newest !== undefined && newest.signed.version > version) {
    throw wrongBase(`the repository is already at root v${newest.signed.version}`, { version });
  }
  if (base !== undefined && rootDigest(base) === proposal.baseDigest) return base;
  throw wrongBase(`the repository is at root v${newest?.signed.version ?? 0}`, {
    expected: base === undefined ? 'no root' : rootDigest(base),
    actual: proposal.baseDigest,
  });
}

/** Verifies the proposal against the committer's own root too. @throws WritError PROPOSAL_BASE when its chain differs */
function requireLinked(proposal: Proposal, own: ReturnType<typeof readRoots>): void {
  const [first] = own.roots;
  // An own copy equal to the proposed root was written by an earlier run, after all other files.
  if (first !== undefined && rootDigest(first) === rootDigest(proposal.root)) return;
  trustBase(proposal, own.anchor);
}

const signingOrder: readonly LaterRole[] = ['targets', 'snapshot', 'timestamp'];

/** @returns the role, and the roles that list its file and must be signed after it */
function rolesFrom(role: LaterRole): readonly LaterRole[] {
  return signingOrder.slice(signingOrder.indexOf(role));
}

/** @returns the roles in signing order */
function planRoles(state: RepositoryState, root: RootSigned, { keys, clock }: PlanOptions) {
  const { live } = state;
  const files = { targets: state.targets, snapshot: live.snapshot, timestamp: live.timestamp };
  const isVouched = (file: ParsedFile<LaterRole>): boolean => isVouchedByRoot(file, { signed: root });
  const isAvailable = (role: LaterRole): boolean =>
    keys !== undefined && hasAvailableKeys(keys, signingAuthorityOf(root, role));
  const unvouched = signingOrder.filter((role) => !isVouched(files[role]));
  const needed = new Set(unvouched.flatMap((role) => rolesFrom(role)));
  // An earlier run signed the targets, and ended before it published them.
  if (!isVouched(live.targets)) for (const role of rolesFrom('snapshot')) needed.add(role);
  const expired = signingOrder.filter((role) => files[role].expiresAtMs <= clock.nowMs());
  // Expired roles are signed in the same run where their keys are available, because the same people would have to sign
  // them next.
  const along = expired.map((role) => rolesFrom(role)).filter((roles) => roles.every(isAvailable));
  const wanted = new Set([...needed, ...along.flat()]);
  const toSign = signingOrder.filter((role) => wanted.has(role));
  return {
    /** The roles that hosts refuse under the next root until their new keys sign them. */
    unvouched,
    /** The roles that are signed now: the former, and those that list them. */
    toSign,
    /** The roles to sign without available new keys. */
    missing: toSign.filter((role) => !isAvailable(role)),
  };
}
