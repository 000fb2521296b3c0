// Converts between names and numbers of system users. Reads /etc/passwd and /etc/group only: a user in a directory service must be
// configured by its number, and has no group but the one with the same number.
import { accountRows, isAccountId, noAccount } from './account-files.js';

export interface UserIds {
  readonly uid: number;
  readonly gid: number;
  /** Supplementary groups. */
  readonly groups: readonly number[];
}

export interface UserFiles {
  readonly passwd: string;
  readonly group: string;
}

const systemFiles: UserFiles = { passwd: '/etc/passwd', group: '/etc/group' };

/**
 * @param user name or number; a text of digits is a name
 * @returns the ids in passwd, and the supplementary groups that list the name (empty without any). A number without an entry
 *   gives that number as `uid` and `gid`, and no groups.
 * @throws WritError CONFIG_INVALID for a name that passwd does not have or that has invalid numbers; never for a number
 */
export function resolveUser(user: string | number, files: UserFiles = systemFiles): UserIds {
  const row = accountRows(files.passwd).find(([name, , uid]) =>
    typeof user === 'number' ? uid === String(user) : name === user,
  );
  const [name, , uid = '', gid = ''] = row ?? [];
  if (name === undefined || !isAccountId(uid) || !isAccountId(gid)) {
    if (typeof user === 'number') return { uid: user, gid: user, groups: [] };
    throw noAccount('user', user);
  }
  const groups = accountRows(files.group).flatMap(([, , id = '', members = '']) =>
    isAccountId(id) && members.split(',').includes(name) ? [Number(id)] : [],
  );
  return { uid: Number(uid), gid: Number(gid), groups };
}

/** @returns its name, or the number as a text where /etc/passwd has none */
export function userName(uid: number, files: UserFiles = systemFiles): string {
  const [name = ''] = accountRows(files.passwd).find((row) => row[2] === String(uid)) ?? [];
  return name === '' ? String(uid) : name;
}

/** @returns what root types before a command to run it as this user. runuser knows names only */
export function asUser(uid: number): string {
  const name = userName(uid);
  return name === String(uid) ? `setpriv --reuid=${name} --clear-groups` : `runuser -u ${name} --`;
}
