// Reports every role of a repository for its operator: version, valid signatures, remaining days and signers. Pure over the
// repository state; src/cli prints it.
import type { ErrorCode } from '../../core/errors.js';
import { type Authority, delegationAuthority, rootAuthority } from '../../core/tuf/metadata-checks.js';
import { countValidSigners } from '../../core/tuf/signature-schemes.js';
import type { ParsedFile, TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import { nameOfKey } from '../keys/signer-names.js';
import { delegatedRolesOf, findRefusedListings, versionIn } from '../repository/delegated-files.js';
import { readValidityPeriods } from '../repository/metadata-content.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { readRoleValidityMs } from '../signing/sign-role.js';

/**
 * - `expired`: hosts refuse the role.
 * - `refused`: the current keys did not sign it.
 * - `damaged`: hosts cannot read or accept the listed file.
 * - `unsigned`: it has no file yet.
 * - `waiting`: its first version is signed and waits for the online keys.
 * - `soon`: it expires within the requested time.
 */
type RoleCondition = 'fresh' | 'soon' | 'unsigned' | 'waiting' | 'expired' | 'refused' | 'damaged';

export interface RoleReport {
  readonly role: string;
  /** The role that delegates to it; absent for the top-level roles. */
  readonly by?: string;
  /** 0 before its first file. */
  readonly version: number;
  /** The number of valid signatures by keys of the role. */
  readonly signed: number;
  readonly threshold: number;
  readonly keyIds: readonly string[];
  /** Names of the key owners, or the first characters of key ids. */
  readonly signers: readonly string[];
  /** Absent before its first file. */
  readonly expiresMs?: number;
  readonly condition: RoleCondition;
  /** Why hosts refuse the listed file of a delegated role. */
  readonly problem?: { readonly code: ErrorCode; readonly message: string };
}

/** @returns one row for each role: root, targets, the roles that targets delegate to, snapshot, timestamp */
export function reportRoles(state: RepositoryState, nowMs: number, failWithinMs: number): RoleReport[] {
  const { live, outdated } = state;
  const validityByRole = readValidityPeriods(live.root.signed);
  // A role with a validity period of a week would otherwise always expire "soon" within a month.
  const age = (validityMs: number) => ({ nowMs, soonMs: Math.min(failWithinMs, validityMs / 4) });
  const top = (role: TopLevelRole): RoleReport => {
    const authority = rootAuthority(live.root, role);
    const report = { role, ...describe(live[role], authority, live.root, age(validityByRole[role])) };
    return outdated.some((one) => one === role) ? { ...report, condition: 'refused' } : report;
  };
  const refused = findRefusedListings(state.layout, live.snapshot.signed.meta, live.targets);
  const teams = delegatedRolesOf(live.targets).map((role): RoleReport => {
    const authority = delegationAuthority(live.targets, role);
    const row = { role: role.name, by: 'targets' };
    const file = live.delegated.get(role.name);
    if (file !== undefined)
      return {
        ...row,
        ...describe(file, authority, live.targets, age(readRoleValidityMs(state, role.name))),
      };
    const version = versionIn(live.snapshot.signed.meta, role.name);
    const waiting = version === 0 ? state.delegated.get(role.name) : undefined;
    if (waiting !== undefined && waiting.expiresAtMs > nowMs)
      return {
        ...row,
        ...describe(waiting, authority, live.targets, age(0)),
        version,
        condition: 'waiting',
      };
    const own = { ...row, version, signed: 0, ...describeSigners(authority, live.targets) };
    const listing = refused.get(role.name);
    if (listing === undefined) return { ...own, condition: version === 0 ? 'unsigned' : 'refused' };
    const { code, message } = listing.cause;
    const condition = listing.hasOtherKeys ? 'refused' : 'damaged';
    return { ...own, condition, problem: { code, message } };
  });
  return [top('root'), top('targets'), ...teams, top('snapshot'), top('timestamp')];
}

type Delegator = Pick<ParsedFile<TopLevelRole>, 'signed'>;

function describeSigners({ role }: Authority, delegator: Delegator) {
  const signers = role.keyids.map((id) => nameOfKey(delegator.signed, id));
  return { threshold: role.threshold, keyIds: role.keyids, signers };
}

function describe(
  { signatures, signedBytes, signed, expiresAtMs }: ParsedFile<TopLevelRole>,
  authority: Authority,
  delegator: Delegator,
  { nowMs, soonMs }: { readonly nowMs: number; readonly soonMs: number },
): Omit<RoleReport, 'role' | 'by'> {
  const { keys, role } = authority;
  const leftMs = expiresAtMs - nowMs;
  return {
    version: signed.version,
    signed: countValidSigners({ keys, role, signatures, signedBytes }),
    ...describeSigners(authority, delegator),
    expiresMs: expiresAtMs,
    condition: leftMs <= 0 ? 'expired' : leftMs < soonMs ? 'soon' : 'fresh',
  };
}
