// `writ delegate`: lets a team sign its own bundles, changes its keys or paths, or ends the delegation. The targets role
// signs. A team with available keys signs its file in the same step, so that hosts see both at once.

import { type KeyDirectory, openKeysOf, requireKeysOf } from '../keys/key-directory.js';
import type { Signer } from '../keys/signer.js';
import { isWaiting } from '../repository/repository-state.js';
import type { SignedRole } from '../signing/online-signing.js';
import {
  type ChangeOptions,
  type ChangeResult,
  changeRepository,
  readStateBeforeLock,
} from '../signing/sign-change.js';
import { describeNewestVersion, findRoleHolder, signDelegations, signRole } from '../signing/sign-role.js';
import { type DelegationPlan, planDelegation } from './delegation-plan.js';
import type { DelegationRequest } from './delegation-rules.js';

interface Delegated {
  /** Absent when nothing changed and only waiting files were published. */
  readonly plan?: DelegationPlan;
  readonly signed: readonly SignedRole[];
  /** Hosts see no release of the role until its keys, which are not available here, have signed. */
  readonly waitsForRole: boolean;
}

export type DelegateResult = ChangeResult<Delegated>;

/**
 * Changes one delegation in targets, and signs the delegated role if its new keys require that and are available.
 * @returns `nothing-new`: the delegation is so already, and no file waited; nothing was written. `live`: hosts see the change.
 *   `waiting`: the online keys in `missing` must still sign. `signed` has `targets`, and the role if it was signed too
 * @throws WritError DELEGATION_REFUSED, ROLE_UNKNOWN, USAGE, KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*, CLOCK_UNSURE,
 *   REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing was published), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function delegateRole(
  request: DelegationRequest,
  options: ChangeOptions,
): Promise<DelegateResult> {
  const { keys, report } = options;
  const seen = readStateBeforeLock(options);
  const first = planDelegation(seen, request);
  // Returns before a key is opened or a lock is taken, so that an unchanged delegation costs no passphrase and no write.
  if (first === undefined && !isWaiting(seen)) return { kind: 'nothing-new' };
  const own = first && (await requireKeysOf(keys, findRoleHolder(seen, 'targets')));
  const team = first && (await openTeamKeys(keys, first));
  return changeRepository<Delegated>(options, seen, async (writer, before, clock) => {
    const plan = planDelegation(before, request);
    if (plan === undefined) return { state: before, done: { signed: [], waitsForRole: false } };
    const { role, needsSignature } = plan;
    const signing = { writer, role: 'targets', entries: {}, clock };
    report.begin('sign', 'targets');
    const state = await signDelegations({ ...signing, state: before, signers: own ?? [], plan });
    const signed = [describeNewestVersion(state, 'targets')];
    if (!needsSignature || team === undefined)
      return { state, done: { plan, signed, waitsForRole: needsSignature } };
    report.begin('sign', role);
    const both = await signRole({ ...signing, state, role, signers: team });
    return {
      state: both,
      done: { plan, signed: [...signed, describeNewestVersion(both, role)], waitsForRole: false },
    };
  });
}

/** @returns undefined where the keys are not available, or the role has nothing to sign */
async function openTeamKeys(
  keys: KeyDirectory,
  { role, after, needsSignature, delegations }: DelegationPlan,
): Promise<readonly Signer[] | undefined> {
  return after && needsSignature
    ? openKeysOf(keys, { name: role, keys: delegations.keys, role: after })
    : undefined;
}

/** @returns the plan of delegateRole; undefined where nothing would change. @throws as delegateRole */
export function previewDelegation(
  request: DelegationRequest,
  options: ChangeOptions,
): DelegationPlan | undefined {
  return planDelegation(readStateBeforeLock(options), request);
}

export type { DelegationRequest } from './delegation-rules.js';
