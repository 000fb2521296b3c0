// The number of a system group by its name. Reads /etc/group only; a group that lives in a directory
// service is given by its number.
import { accountRows, isAccountId, noAccount } from './account-files.js';

/**
 * @param group name or number
 * @throws WritError CONFIG_INVALID when /etc/group has no such name
 */
export function lookUpGroup(group: string | number, file = '/etc/group'): number {
  if (typeof group === 'number') return group;
  const [, , id = ''] = accountRows(file).find(([name]) => name === group) ?? [];
  if (isAccountId(id)) return Number(id);
  throw noAccount('group', group);
}
