// Every role of a repository as somebody has to look after it: version, signatures, days left, and who signs. Pure over
// a repository's state; words are the command's.
import type { Authority } from '../../core/tuf/metadata-checks.js';
import { delegationAuthority, rootAuthority } from '../../core/tuf/metadata-checks.js';
import { countValidSigners } from '../../core/tuf/signature-schemes.js';
import type { DelegatedRole, ParsedFile, TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import { nameOfKey } from '../keys/signer-names.js';
import { delegatedRolesOf, versionIn } from '../repository/delegated-files.js';
import { livesOf } from '../repository/metadata-content.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { lifeOfRole } from '../signing/sign-role.js';

/**
 * `expired`: hosts refuse it; `refused`: not signed by the keys of today; `unsigned`: nobody has signed it yet;
 * `soon`: it expires within the time that was asked for.
 */
export type RoleCondition = 'fresh' | 'soon' | 'unsigned' | 'expired' | 'refused';

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
  const lives = livesOf(state.live.root.signed);
  const top = (role: TopLevelRole): RoleReport => {
    const file = state.live[role];
    const outdated = role !== 'root' && state.outdated.includes(role);
    const age = { nowMs, soonMs: Math.min(failWithinMs, lives[role] / 4) };
    const row = describe(file, rootAuthority(state.live.root, role), state.live.root, age);
    return { role, ...row, ...(outdated ? { condition: 'refused' as const } : {}) };
  };
  const teams = delegatedRolesOf(state.live.targets).map((role) =>
    reportDelegated(state, role, { nowMs, soonMs: Math.min(failWithinMs, lifeOfRole(state, role.name) / 4) }),
  );
  return [top('root'), top('targets'), ...teams, top('snapshot'), top('timestamp')];
}

interface Age {
  readonly nowMs: number;
  /** A role that lives for a week would warn for ever of ending within a month. */
  readonly soonMs: number;
}

function reportDelegated({ live }: RepositoryState, role: DelegatedRole, age: Age): RoleReport {
  const file = live.delegated.get(role.name);
  const base = { role: role.name, by: 'targets' };
  const authority = delegationAuthority(live.targets, role);
  if (file !== undefined) return { ...base, ...describe(file, authority, live.targets, age) };
  const version = versionIn(live.snapshot.signed.meta, role.name);
  return {
    ...base,
    version,
    signed: 0,
    threshold: role.threshold,
    keyIds: role.keyids,
    signers: role.keyids.map((id) => nameOfKey(live.targets.signed, id)),
    condition: version === 0 ? 'unsigned' : 'refused',
  };
}

type Described = Omit<RoleReport, 'role' | 'by'>;

function describe(
  file: ParsedFile<TopLevelRole>,
  { keys, role }: Authority,
  delegator: Pick<ParsedFile<TopLevelRole>, 'signed'>,
  { nowMs, soonMs }: Age,
): Described {
  const { signatures, signedBytes, signed, expiresAtMs } = file;
  const leftMs = expiresAtMs - nowMs;
  return {
    version: signed.version,
    signed: countValidSigners({ keys, role, signatures, signedBytes }),
    threshold: role.threshold,
    keyIds: role.keyids,
    signers: role.keyids.map((id) => nameOfKey(delegator.signed, id)),
    expiresMs: expiresAtMs,
    condition: leftMs <= 0 ? 'expired' : leftMs < soonMs ? 'soon' : 'fresh',
  };
}
