// Converts the name of a system group to its number. Reads /etc/group only: a group in a directory service must be configured by its
// number.
import { accountRows, isAccountId, noAccount } from './account-files.js';

/**
 * @param group name or number; a number is returned unchanged. A text of digits is a name.
 * @returns the number of the group
 * @throws WritError CONFIG_INVALID if /etc/group cannot be read or has no such name
 */
export function resolveGroup(group: string | number, file = '/etc/group'): number {
  if (typeof group === 'number') return group;
  const [, , id = ''] = accountRows(file).find(([name]) => name === group) ?? [];
  if (isAccountId(id)) return Number(id);
  throw noAccount('group', group);
}

/**
 * Whether a group has no member but this user and root, as the private group that many systems create for each user with umask
 * 002. False for a group without an entry, and for one with a member that passwd does not have.
 */
export function isOwnGroup(
  gid: number,
  { uid = process.getuid?.() ?? 0, passwd = '/etc/passwd', group = '/etc/group' } = {},
): boolean {
  const row = accountRows(group).find(([, , id]) => id === String(gid));
  if (row === undefined) return false;
  const users = accountRows(passwd);
  const listed = (row[3] ?? '').split(',').filter((name) => name !== '');
  const members = users.filter(
    ([name = '', , , primary]) => primary === String(gid) || listed.includes(name),
  );
  const isKnown = listed.every((name) => users.some((user) => user[0] === name));
  const own = ['0', String(uid)];
  return isKnown && members.every(([, , member = '']) => own.includes(member));
}
