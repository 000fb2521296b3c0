// Finds workers by paths, one for each socket or pid file. Owns the listing of one directory and its bounds. Does not follow links, which
// could lead to another program. An unreadable directory is an error, not an empty set.
import type { Dirent } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import picomatch from '#picomatch';
import { isSystemError, WritError } from '../../core/errors.js';
import { probeListener, type SocketPlace } from '../../platform/net/unix-socket.js';
import { unlisted } from '../contract/answer.js';
import type { Liveness } from '../contract/driver.js';
import { listByCommand, type MembersOptions } from './member-command.js';

const maxMembers = 1024;
const maxDirectoryEntries = 16_384;

/**
 * Allows wildcards in the last component only, so that the directory is fixed and can be checked. At most four stars and no repeated
 * group, as in every glob (core/text/glob-bounds), because matching could block the agent.
 */
export const pathGlobPattern =
  '^/([^*?\\[\\]{}\\n\\u0000]*/)?(?![^/]*([)}\\]]\\+|[*+]\\())(?=[^/\\n\\u0000])[^*/\\n\\u0000]*(\\*+[^*/\\n\\u0000]+){0,3}(\\*+[^*/\\n\\u0000]*)?$';

/** @returns whether the path is a glob; a path without a wildcard is one worker, whether it exists or not */
export function isGlob(path: string): boolean {
  return /[*?[\]{}]/.test(basename(path));
}

/**
 * Lists the workers of a driver with sockets: the names of `members`, the matches of a glob, or the one name of a path.
 * @throws WritError WORKER_UNREACHABLE if the workers cannot be listed
 */
export async function listSockets(place: string, members?: MembersOptions): Promise<readonly string[]> {
  if (members !== undefined) return listByCommand(members);
  return isGlob(place) ? listByGlob(place, 'socket') : [basename(place)];
}

/**
 * @returns the socket of one worker of listSockets: with members, place with the name for each `{worker}`; else the file with
 *   that name in the directory of place
 */
export function socketOf(place: string, members: MembersOptions | undefined, worker: string): string {
  return members === undefined ? join(dirname(place), worker) : place.replaceAll('{worker}', () => worker);
}

/**
 * Requires {worker} in the path with `members`, because otherwise one worker would be notified in place of all.
 * @param key as `reset.line`
 * @throws WritError CONFIG_INVALID
 */
export function requireOwnPlace(key: string, place: string, members: MembersOptions | undefined): void {
  if (place.includes('{worker}') === (members !== undefined)) return;
  throw new WritError('CONFIG_INVALID', `${key}: {worker} and \`members\` need each other`);
}

/**
 * @returns sorted names in the directory that match the glob; none if the directory does not exist yet
 * @throws WritError WORKER_UNREACHABLE if the directory cannot be listed
 */
export async function listByGlob(glob: string, kind: 'socket' | 'file'): Promise<readonly string[]> {
  const directory = dirname(glob);
  const isWanted = picomatch(basename(glob), { dot: true });
  const isKind = (entry: Dirent): boolean => (kind === 'socket' ? entry.isSocket() : entry.isFile());
  const names: string[] = [];
  let entries = 0;
  try {
    for await (const entry of await opendir(directory)) {
      entries += 1;
      if (isKind(entry) && isWanted(entry.name)) names.push(entry.name);
      // Fail, because an omitted worker would continue with the old policy unnoticed.
      if (entries > maxDirectoryEntries || names.length > maxMembers)
        throw unlisted(`${directory} has too many entries to check`, { directory, expected: maxMembers });
    }
  } catch (error) {
    // The daemon has not created its directory yet.
    if (isSystemError(error, 'ENOENT')) return [];
    if (!isSystemError(error) || error instanceof WritError) throw error;
    throw unlisted(`${directory} cannot be listed: ${error.code}`, { directory, errno: error.code }, error);
  }
  return names.sort();
}

const livenesses = { listening: 'alive', refused: 'dead', unknown: 'unknown' } as const;

/** @returns the current liveness. The socket of a running daemon may be missing for a moment, as in a reload. */
export async function socketLiveness(place: SocketPlace): Promise<Liveness> {
  return livenesses[await probeListener(place)];
}

/**
 * Identifies the process of a socket by its file, because a restarted daemon binds the socket again.
 * @returns a text that no other socket at this path has had; undefined if there is no socket
 */
export async function socketIdentity(path: string): Promise<string | undefined> {
  try {
    const { ino, mtimeMs } = await lstat(path);
    // Add the mtime, because inodes are reused. No program writes into the file of a socket, so its mtime is its creation.
    return `${ino}@${Math.round(mtimeMs)}`;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
