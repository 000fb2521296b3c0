// `writ delegate`: lets a team sign its own bundles, changes its keys or paths, or ends that. The targets role signs; a
// team whose keys are at hand signs its file in the same step, so that hosts see both at once.

import { openKeysOf, requireKeysOf } from '../keys/key-directory.js';
import type { Signer } from '../keys/signer.js';
import { layoutOf } from '../repository/repository-layout.js';
import { isWaiting, type RepositoryState, readRepositoryState } from '../repository/repository-state.js';
import type { RepositoryWriter } from '../repository/repository-writer.js';
import type { SignedRole } from '../signing/online-signing.js';
import { type ChangeOptions, type SignedChange, signChange } from '../signing/sign-change.js';
import { holderOfRole, signDelegations, signRole, versionOfRole } from '../signing/sign-role.js';
import { type DelegationPlan, planDelegation } from './delegation-plan.js';
import type { DelegationRequest } from './delegation-rules.js';

export type DelegateResult = { readonly kind: 'nothing-new' } | SignedChange<Delegated>;

interface Delegated {
  /** Absent when there was nothing to change, and what waited went live. */
  readonly plan?: DelegationPlan;
  readonly signed: readonly SignedRole[];
  /** Hosts find nothing of the role until it has signed with keys that are not here. */
  readonly waitsForRole: boolean;
}

/**
 * Changes one delegation.
 * @throws WritError DELEGATION_REFUSED, ROLE_UNKNOWN, USAGE, KEYS_MISSING, KEY_UNREADABLE, PASSPHRASE_*,
 *   REPOSITORY_LOCKED, REPOSITORY_INVALID (nothing went live), SIGNATURE_DISAGREEMENT, DISK_*
 */
export async function delegateRole(
  request: DelegationRequest,
  options: ChangeOptions,
): Promise<DelegateResult> {
  const { keys } = options;
  const seen = readRepositoryState(layoutOf(options.repository), keys.path);
  const first = planDelegation(seen, request);
  if (first === undefined && !isWaiting(seen)) return { kind: 'nothing-new' };
  const signers = first === undefined ? [] : await requireKeysOf(keys, holderOfRole(seen, 'targets'));
  const team = first?.needsSignature === true ? await openTeam(first, options) : undefined;
  return signChange<Delegated>(options, {
    seen,
    sign: async (writer, before) => {
      const plan = planDelegation(before, request);
      if (plan === undefined) return { state: before, done: { signed: [], waitsForRole: false } };
      const { state, signed } = await apply({ writer, before, plan, signers, team }, options);
      return { state, done: { plan, signed, waitsForRole: plan.needsSignature && team === undefined } };
    },
  });
}

/** @returns what delegateRole would do; undefined when nothing would change. @throws as it does */
export function previewDelegation(
  request: DelegationRequest,
  { repository, keys }: ChangeOptions,
): DelegationPlan | undefined {
  return planDelegation(readRepositoryState(layoutOf(repository), keys.path), request);
}

function openTeam({ after, delegations }: DelegationPlan, { keys }: ChangeOptions) {
  if (after === undefined) return undefined;
  return openKeysOf(keys, { name: after.name, keys: delegations.keys, role: after });
}

interface Application {
  readonly writer: RepositoryWriter;
  readonly before: RepositoryState;
  readonly plan: DelegationPlan;
  readonly signers: readonly Signer[];
  readonly team: readonly Signer[] | undefined;
}

async function apply(
  { writer, before, plan, signers, team }: Application,
  { report, clock }: ChangeOptions,
): Promise<{ state: RepositoryState; signed: SignedRole[] }> {
  report.begin('sign', 'targets');
  const signing = { writer, role: 'targets', entries: {}, clock };
  const state = await signDelegations({ ...signing, state: before, signers, plan });
  const signed = [{ role: 'targets', version: versionOfRole(state, 'targets') }];
  if (team === undefined || !plan.needsSignature) return { state, signed };
  const { role } = plan;
  report.begin('sign', role);
  const both = await signRole({ ...signing, state, role, signers: team });
  return { state: both, signed: [...signed, { role, version: versionOfRole(both, role) }] };
}

export type { DelegationRequest } from './delegation-rules.js';
