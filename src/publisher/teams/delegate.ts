// `writ delegate`: lets a team sign its own bundles, changes its keys or paths, or ends that. The targets role signs; a
// team whose keys are at hand signs its file in the same step, so that hosts see both at once.

import { openKeysOf, requireKeysOf } from '../keys/key-directory.js';
import type { SignedRole } from '../signing/online-signing.js';
import { type ChangeOptions, type ChangeResult, previewChange, signChange } from '../signing/sign-change.js';
import { holderOfRole, signDelegations, signedRole, signRole } from '../signing/sign-role.js';
import { type DelegationPlan, planDelegation } from './delegation-plan.js';
import type { DelegationRequest } from './delegation-rules.js';

interface Delegated {
  /** Absent when there was nothing to change, and what waited went live. */
  readonly plan?: DelegationPlan;
  readonly signed: readonly SignedRole[];
  /** Hosts find nothing of the role until it has signed with keys that are not here. */
  readonly waitsForRole: boolean;
}

export type DelegateResult = ChangeResult<Delegated>;

/**
 * Changes one delegation.
 * @throws WritError DELEGATION_REFUSED, ROLE_UNKNOWN, USAGE, KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*,
 *   REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing went live), SIGNATURE_DISAGREEMENT, DISK_*
 */
export function delegateRole(request: DelegationRequest, options: ChangeOptions): Promise<DelegateResult> {
  const { keys, report, clock } = options;
  return signChange<DelegationPlan, Delegated>(options, {
    plan: (state) => planDelegation(state, request),
    openSigners: async (seen, plan) => {
      const own = await requireKeysOf(keys, holderOfRole(seen, 'targets'));
      const { role, after, needsSignature, delegations } = plan;
      const holder =
        after && needsSignature ? { name: role, keys: delegations.keys, role: after } : undefined;
      const team = holder && (await openKeysOf(keys, holder));
      return new Map([['targets', own] as const, ...(team === undefined ? [] : [[role, team] as const])]);
    },
    apply: async (plan, signers, { writer, before }) => {
      const { role, needsSignature } = plan;
      const signing = { writer, state: before, role: 'targets', entries: {}, clock };
      report.begin('sign', 'targets');
      const state = await signDelegations({ ...signing, signers: signers.get('targets') ?? [], plan });
      const signed = [signedRole(state, 'targets')];
      const team = needsSignature ? signers.get(role) : undefined;
      if (team === undefined) return { state, done: { plan, signed, waitsForRole: needsSignature } };
      report.begin('sign', role);
      const both = await signRole({ ...signing, state, role, signers: team });
      signed.push(signedRole(both, role));
      return { state: both, done: { plan, signed, waitsForRole: false } };
    },
    unchanged: { signed: [], waitsForRole: false },
  });
}

/** @returns what delegateRole would do; undefined when nothing would change. @throws as it does */
export function previewDelegation(
  request: DelegationRequest,
  options: ChangeOptions,
): DelegationPlan | undefined {
  return previewChange(options, (state) => planDelegation(state, request));
}

export type { DelegationRequest } from './delegation-rules.js';
