// Finds whether a systemd unit file is installed, by its file name alone.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Folders of the administrator, and of packages with and without a merged /usr. */
const systemFolders: readonly string[] = [
  '/etc/systemd/system',
  '/lib/systemd/system',
  '/usr/lib/systemd/system',
];

/** @param folders of unit files; those of the system by default */
export function findUnit(name: string, folders = systemFolders): 'installed' | 'absent' {
  return folders.some((folder) => existsSync(join(folder, name))) ? 'installed' : 'absent';
}
