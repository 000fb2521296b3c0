// Every role of a repository as somebody has to look after it: version, signatures, days left, and who signs. Pure over
// a repository's state; words are the command's.
import type { ErrorCode } from '../../core/errors.js';
import { type Authority, delegationAuthority, rootAuthority } from '../../core/tuf/metadata-checks.js';
import { countValidSigners } from '../../core/tuf/signature-schemes.js';
import type { ParsedFile, TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import { nameOfKey } from '../keys/signer-names.js';
import { delegatedRolesOf, findRefusedListings, versionIn } from '../repository/delegated-files.js';
import { livesOf } from '../repository/metadata-content.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { readRoleValidityMs } from '../signing/sign-role.js';

/**
 * `expired`: hosts refuse it; `refused`: not signed by the keys of today; `damaged`: hosts cannot read the listed file, or refuse it;
 * `unsigned`: no key has signed it yet;
 * `waiting`: its first version is signed and waits for the online keys;
 * `soon`: it expires within the time that was asked for.
 */
type RoleCondition = 'fresh' | 'soon' | 'unsigned' | 'waiting' | 'expired' | 'refused' | 'damaged';

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
  /** Why hosts refuse the listed file of a delegated role. */
  readonly problem?: { readonly code: ErrorCode; readonly message: string };
}

/** @returns one row a role: root, targets with the roles they delegate to, snapshot, timestamp */
export function reportRoles(state: RepositoryState, nowMs: number, failWithinMs: number): RoleReport[] {
  const { live, outdated } = state;
  const lives = livesOf(live.root.signed);
  // A role that lives for a week would warn for ever of ending within a month.
  const age = (lifeMs: number) => ({ nowMs, soonMs: Math.min(failWithinMs, lifeMs / 4) });
  const top = (role: TopLevelRole): RoleReport => {
    const authority = rootAuthority(live.root, role);
    const report = { role, ...describe(live[role], authority, live.root, age(lives[role])) };
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
    const own = { ...row, version, signed: 0, ...whoSigns(authority, live.targets) };
    const listing = refused.get(role.name);
    if (listing === undefined) return { ...own, condition: version === 0 ? 'unsigned' : 'refused' };
    const { code, message } = listing.cause;
    const condition = listing.hasOtherKeys ? 'refused' : 'damaged';
    return { ...own, condition, problem: { code, message } };
  });
  return [top('root'), top('targets'), ...teams, top('snapshot'), top('timestamp')];
}

type Delegator = Pick<ParsedFile<TopLevelRole>, 'signed'>;

function whoSigns({ role }: Authority, delegator: Delegator) {
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
    ...whoSigns(authority, delegator),
    expiresMs: expiresAtMs,
    condition: leftMs <= 0 ? 'expired' : leftMs < soonMs ? 'soon' : 'fresh',
  };
}
