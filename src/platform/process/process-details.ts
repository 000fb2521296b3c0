// Details of one process: its program, its command line, its pids in other namespaces, and whether it can open a file of this
// host. Reads /proc only; unreadable details are left out.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { type FileLocation, locateFile, type Mount, parseMountInfo } from '../../core/status/mount-table.js';
import { printable } from '../../core/text/printable.js';
import { listPids, readCommand, readProcLink, readProcText } from './proc-files.js';

const maxStatusBytes = 65_536;
const maxMountBytes = 4_000_000;
const maxProcesses = 65_536;
/** The kernel truncates names to this length. */
const maxCommCharacters = 15;

/** @returns the processes that have this pid in another pid namespace */
export function findInnerPids(pid: number): readonly number[] {
  return listPids('/proc')
    .slice(0, maxProcesses)
    .filter((one) => innerPidsOf(one).includes(pid));
}

/** @returns the pids of a process in the namespaces below that of /proc */
function innerPidsOf(pid: number): readonly number[] {
  const status = readProcText(`/proc/${pid}/status`, maxStatusBytes) ?? '';
  const [, ...inner] = /^NSpid:\t(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? [];
  return inner.map(Number);
}

export interface FileIdentity {
  readonly device: number;
  readonly inode: number;
}

/**
 * Finds whether a process can open the same file, under any path. Only mounts of the same file system are accessed: another one
 * may be that of a dead server, which would block the caller.
 * @param path of the file for this process; its directory may contain links
 */
export function seesFile(pid: number, path: string, file: FileIdentity): boolean {
  const place = placeHere(path);
  if (place === undefined) return false;
  const mounts = parseMountInfo(readProcText(`/proc/${pid}/mountinfo`, maxMountBytes) ?? '');
  return mounts.some((mount) => {
    const rest = restIn(mount, place);
    return rest !== undefined && isFile(join('/proc', String(pid), 'root', mount.mountPoint, rest), file);
  });
}

function placeHere(path: string): FileLocation | undefined {
  try {
    const real = fs.realpathSync(path);
    return locateFile(real, parseMountInfo(readProcText('/proc/self/mountinfo', maxMountBytes) ?? ''));
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

/** @returns the path below the mount point; undefined if this mount does not contain the file */
function restIn({ device, root }: Mount, place: FileLocation): string | undefined {
  if (device !== place.device) return undefined;
  if (root === '/' || place.path === root) return root === '/' ? place.path : '';
  return place.path.startsWith(`${root}/`) ? place.path.slice(root.length) : undefined;
}

/** Compares file identities. A file that this user may not read counts as the same one. */
function isFile(path: string, { device, inode }: FileIdentity): boolean {
  try {
    const { dev, ino } = fs.statSync(path);
    return dev === device && ino === inode;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return error.code === 'EACCES' || error.code === 'EPERM';
  }
}

/**
 * @param program the path of an executable, or a name that is compared with the names of the executable and the process
 * @returns true if a process runs this program
 */
export function runsProgram(pid: number, program: string): boolean {
  // The kernel adds a mark to an executable that a new package has replaced.
  const executable = readProcLink(`/proc/${pid}/exe`).text?.replace(/ \(deleted\)$/, '');
  if (program.startsWith('/')) return executable === program || executable === realPathOf(program);
  if (executable !== undefined && basename(executable) === program) return true;
  return readCommand('/proc', pid)?.slice(0, maxCommCharacters) === program.slice(0, maxCommCharacters);
}

function realPathOf(path: string): string | undefined {
  try {
    return fs.realpathSync(path);
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

const maxCommandBytes = 131_072;
const maxShownCharacters = 200;

/** @returns the command line of a process for messages: at most 200 characters, without control characters */
export function readCommandLine(pid: number): string | undefined {
  const text = readProcText(`/proc/${pid}/cmdline`, maxCommandBytes);
  const argv = text === undefined || text === '' ? readCommand('/proc', pid) : text.replace(/\0+$/, '');
  if (argv === undefined) return undefined;
  const line = printable(argv.slice(0, 4 * maxShownCharacters).replaceAll('\0', ' '));
  return line.length > maxShownCharacters ? `${line.slice(0, maxShownCharacters)}...` : line;
}
