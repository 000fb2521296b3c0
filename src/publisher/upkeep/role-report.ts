// Every role of a repository as somebody has to look after it: version, signatures, days left, and who signs. Pure over
// a repository's state; words are the command's.
import { type Authority, delegationAuthority, rootAuthority } from '../../core/tuf/metadata-checks.js';
import { countValidSigners } from '../../core/tuf/signature-schemes.js';
import type { ParsedFile, TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import { nameOfKey } from '../keys/signer-names.js';
import { delegatedRolesOf, versionIn } from '../repository/delegated-files.js';
import { livesOf } from '../repository/metadata-content.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { lifeOfRole } from '../signing/sign-role.js';

/**
 * `expired`: hosts refuse it; `refused`: not signed by the keys of today; `unsigned`: nobody has signed it yet;
 * `soon`: it expires within the time that was asked for.
 */
type RoleCondition = 'fresh' | 'soon' | 'unsigned' | 'expired' | 'refused';

export interface RoleReport {
  readonly role: string;
  /** Who delegates to it; absent for the top-level roles. */
  readonly by?: string;
  /** 0 before its first file. */
  readonly version: number;
  /** Valid signatures by keys of the role. */
  readonly signed: number;
  readonly threshold: number;
  readonly keyIds: readonly string[];
  /** Of the people who hold the keys, else the beginnings of key ids. */
  readonly signers: readonly string[];
  /** Absent before its first file. */
  readonly expiresMs?: number;
  readonly condition: RoleCondition;
}

/** @returns one row a role: root, targets with the roles they delegate to, snapshot, timestamp */
export function reportRoles(state: RepositoryState, nowMs: number, failWithinMs: number): RoleReport[] {
  const { live, outdated } = state;
  const lives = livesOf(live.root.signed);
  // A role that lives for a week would warn for ever of ending within a month.
  const age = (lifeMs: number) => ({ nowMs, soonMs: Math.min(failWithinMs, lifeMs / 4) });
  const top = (role: TopLevelRole): RoleReport => {
    const row = { role, ...whoSigns(rootAuthority(live.root, role), live.root) };
    const report = { ...row, ...describe(live[role], rootAuthority(live.root, role), age(lives[role])) };
    return outdated.some((one) => one === role) ? { ...report, condition: 'refused' } : report;
  };
  const teams = delegatedRolesOf(live.targets).map((role): RoleReport => {
    const authority = delegationAuthority(live.targets, role);
    const row = { role: role.name, by: 'targets', ...whoSigns(authority, live.targets) };
    const file = live.delegated.get(role.name);
    if (file !== undefined)
      return { ...row, ...describe(file, authority, age(lifeOfRole(state, role.name))) };
    const version = versionIn(live.snapshot.signed.meta, role.name);
    return { ...row, version, signed: 0, condition: version === 0 ? 'unsigned' : 'refused' };
  });
  return [top('root'), top('targets'), ...teams, top('snapshot'), top('timestamp')];
}

function whoSigns({ role }: Authority, delegator: Pick<ParsedFile<TopLevelRole>, 'signed'>) {
  const signers = role.keyids.map((id) => nameOfKey(delegator.signed, id));
  return { threshold: role.threshold, keyIds: role.keyids, signers };
}

function describe(
  { signatures, signedBytes, signed, expiresAtMs }: ParsedFile<TopLevelRole>,
  { keys, role }: Authority,
  { nowMs, soonMs }: { readonly nowMs: number; readonly soonMs: number },
): Pick<RoleReport, 'version' | 'signed' | 'condition'> & { readonly expiresMs: number } {
  const leftMs = expiresAtMs - nowMs;
  return {
    version: signed.version,
    signed: countValidSigners({ keys, role, signatures, signedBytes }),
    expiresMs: expiresAtMs,
    condition: leftMs <= 0 ? 'expired' : leftMs < soonMs ? 'soon' : 'fresh',
  };
}
