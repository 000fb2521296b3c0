// The number of a system group by its name. Reads /etc/group only; a group that lives in a directory
// service is given by its number.
import { accountRows, isAccountId, noAccount } from './account-files.js';

/**
 * @param group name or number
 * @throws WritError CONFIG_INVALID when /etc/group has no such name
 */
export function resolveGroup(group: string | number, file = '/etc/group'): number {
  if (typeof group === 'number') return group;
  const [, , id = ''] = accountRows(file).find(([name]) => name === group) ?? [];
  if (isAccountId(id)) return Number(id);
  throw noAccount('group', group);
}

/**
 * Whether a group has no member but this user and root: the private group that many systems give to each user, with a umask of
 * 002. A group that no file names may have any member.
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
