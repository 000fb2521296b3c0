// What committing a proposal would do, from the repository as it is: is the proposal complete, which roles need a
// signature of new keys at once, are those keys here. Reads, and writes nothing; asked again under the lock.
import { isVouchedByRoot, requireFresh } from '../../core/tuf/metadata-checks.js';
import { trustFirstRoot, trustNextRoot } from '../../core/tuf/trusted-set.js';
import { type ParsedFile, parseEnvelope, type RootSigned } from '../../core/tuf/tuf-metadata.js';
import type { Clock } from '../../platform/time/clock.js';
import { holderOf, type KeyDirectory, keysAtHand } from '../keys/key-directory.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import type { LaterRole, MissingFiles } from '../repository/live-files.js';
import { layoutOf } from '../repository/repository-layout.js';
import { type RepositoryState, readRepositoryState, readRoots } from '../repository/repository-state.js';
import { listUnconfirmedTeams, removesTargetsKey, type TeamKeys } from './confirm-teams.js';
import { type Proposal, rootDigest, trustBase, wrongBase } from './proposal-file.js';
import { isComplete, tallySignatures, validSignatures, withSignatures } from './proposal-signatures.js';
import { judgeRoot, requireSane } from './root-rules.js';

export type CommitPlan = ReturnType<typeof planCommit>;

export interface PlanOptions {
  readonly repository: string;
  /**
   * The committer's keys, also those of roles that the root changes, and copy of the root; without it, the repository's
   * first root is believed.
   */
  readonly keys?: KeyDirectory | undefined;
  readonly proposal: Proposal;
  readonly clock: Clock;
  /** Sign waiting targets too, although the next root does not list their keys; false by default. */
  readonly shouldIncludeWaiting?: boolean | undefined;
  /** Left out: refused. */
  readonly missingFiles?: MissingFiles | undefined;
  /** Needed for each team where the root removes a targets key. */
  readonly teamKeys?: TeamKeys | undefined;
}

/**
 * @returns the next root as it will be in the repository, whether an earlier run has written this very one, the
 *   repository's state under the root of now, and what has to be signed
 * @throws WritError PROPOSAL_BASE, ROOT_CHANGE_REFUSED, SIGNATURE_THRESHOLD when signers are missing, METADATA_EXPIRED,
 *   REPOSITORY_INVALID
 */
export function planCommit(options: PlanOptions) {
  const { repository, keys, proposal, clock } = options;
  const layout = layoutOf(repository);
  const fromScratch = readRoots(layout).roots;
  const base = baseOf(proposal, fromScratch);
  if (keys !== undefined) requireLinked(proposal, readRoots(layout, keys.path));
  requireSane(judgeRoot(base.signed, proposal.root.signed), { danger: 'accepted' });
  requireFresh(proposal.root, clock.nowMs());
  const trusted = { base, proposal };
  const tallies = tallySignatures(trusted);
  const complete = withSignatures(proposal, validSignatures(trusted));
  const root = parseEnvelope(complete.root.bytes, 'root');
  const written = fromScratch.at(-1)?.signed.version === root.signed.version;
  // Both thresholds, by the very rules of a host; the tally is for people.
  if (isComplete(tallies)) trustNextRoot(trustFirstRoot(base.bytes), root.bytes);
  // Waiting targets of a replaced key may be signed by a thief.
  const { shouldIncludeWaiting, missingFiles } = options;
  const reading = {
    outdatedTargets: 'accepted',
    nextRoot: root,
    shouldIncludeWaiting,
    missingFiles,
  } as const;
  const state = readRepositoryState(layout, keys?.path, reading);
  const roles = planRoles(state, root.signed, options);
  // Without a new targets key too: the old key signs nothing after the commit, so that a wrong key could not be corrected.
  const isSigning = !roles.missing.includes('targets') && roles.unvouched.includes('targets');
  const isVouching = !written || isSigning;
  const teams =
    isVouching && removesTargetsKey(base.signed, root.signed) ? delegatedRolesOf(state.targets) : [];
  const unconfirmedTeams = listUnconfirmedTeams(teams, options.teamKeys);
  return { base, proposal: complete, root, tallies, state, written, unconfirmedTeams, ...roles };
}

/** The root before the proposed one, as the repository has it. */
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

/** The committer's own word, beside the repository's. @throws WritError PROPOSAL_BASE when that root leads elsewhere */
function requireLinked(proposal: Proposal, own: ReturnType<typeof readRoots>): void {
  const [first] = own.roots;
  // A copy that is already the proposed root was written by an earlier run, after everything else.
  if (first !== undefined && rootDigest(first) === rootDigest(proposal.root)) return;
  trustBase(proposal, own.anchor);
}

const signingOrder: readonly LaterRole[] = ['targets', 'snapshot', 'timestamp'];

/** @returns the role, and those that name it and must be signed after it */
function cascade(role: LaterRole): readonly LaterRole[] {
  return signingOrder.slice(signingOrder.indexOf(role));
}

/** @returns roles in signing order */
function planRoles(state: RepositoryState, root: RootSigned, { keys, clock }: PlanOptions) {
  const { live } = state;
  const files = { targets: state.targets, snapshot: live.snapshot, timestamp: live.timestamp };
  const isVouched = (file: ParsedFile<LaterRole>): boolean => isVouchedByRoot(file, { signed: root });
  const isHere = (role: LaterRole): boolean => keys !== undefined && keysAtHand(keys, holderOf(root, role));
  const unvouched = signingOrder.filter((role) => !isVouched(files[role]));
  const needed = new Set(unvouched.flatMap((role) => cascade(role)));
  // An earlier run signed the targets, and ended before hosts were told.
  if (!isVouched(live.targets)) for (const role of cascade('snapshot')) needed.add(role);
  const expired = signingOrder.filter((role) => files[role].expiresAtMs <= clock.nowMs());
  // What expired is signed along where its keys are here: it may be the same people's next errand.
  const along = expired.map((role) => cascade(role)).filter((roles) => roles.every(isHere));
  const wanted = new Set([...needed, ...along.flat()]);
  const toSign = signingOrder.filter((role) => wanted.has(role));
  return {
    /** Hosts refuse them under the next root until its keys sign them. */
    unvouched,
    /** Signed now: those, and what must follow them. */
    toSign,
    /** Their new keys are needed and not here. */
    missing: toSign.filter((role) => !isHere(role)),
  };
}
