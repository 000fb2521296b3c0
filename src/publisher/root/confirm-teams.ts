// Confirms the keys of teams when a root removes a targets key. Attack: a stolen targets key delegates to another key under
// the name of a team, and the next targets would sign that delegation again. The operator therefore gives the keys of each
// team. Pure.
import { WritError } from '../../core/errors.js';
import type { DelegatedRole, RootSigned } from '../../core/tuf/tuf-metadata.js';
import { shortKeyId } from '../keys/signer-names.js';

/** Key ids that the operator received from each team, by role. */
export type TeamKeys = ReadonlyMap<string, readonly string[]>;

/** A delegation of the next targets that the operator did not confirm. */
export interface UnconfirmedTeam {
  readonly role: string;
  readonly keyIds: readonly string[];
  /** The operator gave other keys for the role. */
  readonly isOther: boolean;
}

/** @returns whether the next root removes a key of the targets */
export function removesTargetsKey(base: RootSigned, next: RootSigned): boolean {
  const { keyids } = next.roles.targets;
  return base.roles.targets.keyids.some((id) => !keyids.includes(id));
}

/** @returns the delegations with another set of keys than the given one */
export function listUnconfirmedTeams(
  delegated: readonly DelegatedRole[],
  given: TeamKeys = new Map(),
): readonly UnconfirmedTeam[] {
  return delegated.flatMap(({ name: role, keyids: keyIds }) => {
    const keys = given.get(role);
    const isSame = keys !== undefined && hasSameIds(keys, keyIds);
    return isSame ? [] : [{ role, keyIds, isOther: keys !== undefined }];
  });
}

function hasSameIds(one: readonly string[], other: readonly string[]): boolean {
  return one.every((id) => other.includes(id)) && other.every((id) => one.includes(id));
}

const maxNamed = 20;

const askHint = 'Ask each team for its public key: `--team-key ROLE=FILE`.';
const writtenHint =
  'The root is committed, so only the new targets key can correct another key. Give the whole id of that other key (`writ repo log --json`), with --leave-unsigned and --keys without online keys. Then `writ delegate ROLE --key FILE` with the same --keys, before `writ refresh`: docs/operations.md, A stolen targets key.';

/**
 * @param isWritten whether the repository has the root already, so that the old targets key cannot sign a correction
 * @throws WritError TEAM_KEY_UNCONFIRMED; the message has no whole id, which could be copied into the flag
 */
export function requireConfirmedTeams(teams: readonly UnconfirmedTeam[], isWritten: boolean): void {
  const [first] = [...teams.filter(({ isOther }) => isOther), ...teams];
  if (first === undefined) return;
  const { role, keyIds, isOther } = first;
  const roles = teams.map((team) => team.role).slice(0, maxNamed);
  const found = keyIds.map(shortKeyId).join(', ');
  const message = isOther
    ? `the targets delegate to ${role} with ${found}, and these are not the keys that you gave`
    : `the root removes a targets key, and the keys of ${roles.join(', ')} are not confirmed`;
  throw new WritError('TEAM_KEY_UNCONFIRMED', message, {
    facts: { role, roles, count: teams.length },
    ...(isWritten ? { hint: `${askHint} ${writtenHint}` } : {}),
  });
}
