// What one process is: its program, its command line, its numbers in other pid namespaces, and whether a file of ours is in
// its view. Reads /proc only; what may not be read is left out of the answer.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { type FileLocation, locateFile, type Mount, parseMountInfo } from '../../core/status/mount-table.js';
import { printable } from '../../core/text/printable.js';
import { listPids, readCommand, readProcLink, readProcText } from './proc-files.js';

const maxStatusBytes = 65_536;
const maxMountBytes = 4_000_000;
const maxProcesses = 65_536;
/** The kernel keeps so much of a name. */
const maxCommCharacters = 15;

/** @returns the processes of other pid namespaces that have this number there */
export function findInnerPids(pid: number): readonly number[] {
  return listPids('/proc')
    .slice(0, maxProcesses)
    .filter((one) => innerPidsOf(one).includes(pid));
}

/** @returns the numbers of a process in the pid namespaces below the one that /proc shows */
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
 * Whether a process can open this very file, under whatever path it has there. Only mounts of the file's own file system are
 * asked: another one may be a dead server, which would hang the caller.
 * @param path of the file here; its directory may be reached through links
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

/** @returns the path below the mount point; undefined where this mount does not have the file */
function restIn({ device, root }: Mount, place: FileLocation): string | undefined {
  if (device !== place.device) return undefined;
  if (root === '/' || place.path === root) return root === '/' ? place.path : '';
  return place.path.startsWith(`${root}/`) ? place.path.slice(root.length) : undefined;
}

/** A file that this user may not look at there may be the same one. */
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
 * @param program a name, compared with the names of the executable and of the process, or the path of the executable
 * @returns whether a process runs it
 */
export function runsProgram(pid: number, program: string): boolean {
  // The kernel marks an executable that a new package has replaced.
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

/** @returns the command line of a process for people: at most 200 characters, without control characters */
export function readCommandLine(pid: number): string | undefined {
  const text = readProcText(`/proc/${pid}/cmdline`, maxCommandBytes);
  const argv = text === undefined || text === '' ? readCommand('/proc', pid) : text.replace(/\0+$/, '');
  if (argv === undefined) return undefined;
  const line = printable(argv.slice(0, 4 * maxShownCharacters).replaceAll('\0', ' '));
  return line.length > maxShownCharacters ? `${line.slice(0, maxShownCharacters)}...` : line;
}
