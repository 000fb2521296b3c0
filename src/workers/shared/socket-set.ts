// Workers found by paths, one a socket or a pid file. Owns the listing of one directory and its bounds.
// Never follows a link, which could lead to another program, and never takes a directory it can't read for empty.
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
 * Wildcards in the last component only: the directory is a fixed place that can be checked. At most four stars and no repeated
 * group, as in every glob (core/text/glob-bounds): the matcher would block the agent.
 */
export const pathGlobPattern =
  '^/([^*?\\[\\]{}\\n\\u0000]*/)?(?![^/]*([)}\\]]\\+|[*+]\\())(?=[^/\\n\\u0000])[^*/\\n\\u0000]*(\\*+[^*/\\n\\u0000]+){0,3}(\\*+[^*/\\n\\u0000]*)?$';

/** @returns whether it stands for a set; a path without a wildcard is one worker, there or not */
export function isGlob(path: string): boolean {
  return /[*?[\]{}]/.test(basename(path));
}

/**
 * The set of a driver of sockets: what `members` names, what a glob matches, or the one of a path, there or not.
 * @throws WritError WORKER_UNREACHABLE when nobody can say
 */
export async function listSockets(place: string, members?: MembersOptions): Promise<readonly string[]> {
  if (members !== undefined) return listByCommand(members);
  return isGlob(place) ? listByGlob(place, 'socket') : [basename(place)];
}

/** @returns the socket of one worker of such a set */
export function socketOf(place: string, members: MembersOptions | undefined, worker: string): string {
  return members === undefined ? join(dirname(place), worker) : place.replaceAll('{worker}', () => worker);
}

/**
 * Each worker that a command names needs a place of its own, or one would be notified for all.
 * @param key as `reset.line`
 * @throws WritError CONFIG_INVALID
 */
export function requireOwnPlace(key: string, place: string, members: MembersOptions | undefined): void {
  if (place.includes('{worker}') === (members !== undefined)) return;
  throw new WritError('CONFIG_INVALID', `${key}: {worker} and \`members\` need each other`);
}

/**
 * @returns names in the directory of the glob that it matches, sorted; none when the directory is not there yet
 * @throws WritError WORKER_UNREACHABLE when nobody can say
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
      // A worker left out in silence would go on with the old policy, and nobody would know.
      if (entries > maxDirectoryEntries || names.length > maxMembers)
        throw unlisted(`${directory} has too many entries to check`, { directory, expected: maxMembers });
    }
  } catch (error) {
    // The directory of a daemon that is not up yet.
    if (isSystemError(error, 'ENOENT')) return [];
    if (!isSystemError(error) || error instanceof WritError) throw error;
    throw unlisted(`${directory} cannot be listed: ${error.code}`, { directory, errno: error.code }, error);
  }
  return names.sort();
}

const livenesses = { listening: 'alive', refused: 'dead', unknown: 'unknown' } as const;

/** As of now: the socket of a live daemon may be away, as in a reload. */
export async function socketLiveness(place: SocketPlace): Promise<Liveness> {
  return livenesses[await probeListener(place)];
}

/**
 * Which process a socket's file belongs to, as far as the file shows: a daemon that starts again binds it again.
 * @returns what no other socket under this path has had; undefined when there is none
 */
export async function socketIdentity(path: string): Promise<string | undefined> {
  try {
    const { ino, mtimeMs } = await lstat(path);
    // An inode is used again; nobody writes into the file of a socket, so that its time is that of its birth.
    return `${ino}@${Math.round(mtimeMs)}`;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
