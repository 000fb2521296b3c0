// Whether a unit file of systemd is installed. Looks at names alone: starts nothing, asks no systemd, reads no unit.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Of the administrator, and of packages with and without a merged /usr. */
const systemFolders: readonly string[] = [
  '/etc/systemd/system',
  '/lib/systemd/system',
  '/usr/lib/systemd/system',
];

/** @param folders where unit files are */
export function findUnit(name: string, folders = systemFolders): 'installed' | 'absent' {
  return folders.some((folder) => existsSync(join(folder, name))) ? 'installed' : 'absent';
}
