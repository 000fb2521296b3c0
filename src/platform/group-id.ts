// The number of a system group by its name: Node has no getgrnam. Reads /etc/group only; a group that lives in
// a directory service is given by its number.
import * as fs from 'node:fs';
import { WritError } from '../core/errors.js';

const maxGroupFileBytes = 1_000_000;

/**
 * @param group name or number
 * @throws WritError CONFIG_INVALID when /etc/group has no such name
 */
export function lookUpGroup(group: string | number, file = '/etc/group'): number {
  if (typeof group === 'number') return group;
  const text = fs.statSync(file).size > maxGroupFileBytes ? '' : fs.readFileSync(file, 'utf8');
  const fields = text
    .split('\n')
    .map((line) => line.split(':'))
    .find(([name]) => name === group);
  const id = fields?.[2] ?? '';
  if (/^\d{1,10}$/.test(id)) return Number(id);
  throw new WritError('CONFIG_INVALID', `there is no group ${group} on this host`, {
    facts: { group },
    hint: 'Create the group, or give its number.',
  });
}
