// Finds whether a systemd unit file is installed, by its file name alone.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Folders of the administrator, and of packages with and without a merged /usr. */
const systemFolders: readonly string[] = [
  '/etc/systemd/system',
  '/lib/systemd/system',
  '/usr/lib/systemd/system',
];

/**
 * @param name file name of the unit, as `writ-agent.service`
 * @param folders of unit files; by default /etc, /lib and /usr/lib of systemd
 * @returns `installed` if a folder has this file, else `absent`, also without folders. A folder that cannot be read counts as
 *   absent. Throws nothing.
 */
export function findUnit(name: string, folders = systemFolders): 'installed' | 'absent' {
  return folders.some((folder) => existsSync(join(folder, name))) ? 'installed' : 'absent';
}
