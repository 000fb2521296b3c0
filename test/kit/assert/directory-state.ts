// What a directory holds, whole: for comparing before and after.
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** @returns mode, mtime and digest (or link target) of everything below, by path */
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

/** @returns inode, mode and times of everything below, by path: the same only where nothing was written at all */
export function inodeState(directory: string): Record<string, string> {
  const state: Record<string, string> = {};
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const { ino, mode, mtimeMs, ctimeMs } = lstatSync(join(directory, name));
    state[name] = `${ino} ${mode} ${mtimeMs} ${ctimeMs}`;
  }
  return state;
}
