// The complete content of a directory, to compare before and after.
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** @returns mode, mtime and SHA-256 (or link target) of all paths below, by path; '' for other types */
export function directoryState(directory: string): Record<string, string> {
  const state: Record<string, string> = {};
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(directory, name);
    const status = lstatSync(path);
    const content = status.isFile()
      ? createHash('sha256').update(readFileSync(path)).digest('hex')
      : status.isSymbolicLink()
        ? readlinkSync(path)
        : '';
    state[name] = `${status.mode.toString(8)} ${status.mtimeMs} ${content}`;
  }
  return state;
}

/** @returns inode, mode and times of all paths below, by path: equal only if nothing was written */
export function inodeState(directory: string): Record<string, string> {
  const state: Record<string, string> = {};
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const { ino, mode, mtimeMs, ctimeMs } = lstatSync(join(directory, name));
    state[name] = `${ino} ${mode} ${mtimeMs} ${ctimeMs}`;
  }
  return state;
}
