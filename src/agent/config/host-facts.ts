// Checks that the programs, files, directories and groups in a configuration exist on this host, as the agent would find them. Runs no
// program, and reads only certificates. Without permission to check, a path counts as existing.
import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { HostFactSource } from '../../core/config/tolerated-rules.js';
import { isSystemError, isWritError } from '../../core/errors.js';
import { readAuthorityFile } from '../../platform/net/authorities.js';
import { defaultPath } from '../../platform/process/run-command.js';
import { resolveGroup } from '../../platform/users/group-id.js';

/**
 * Creates the functions that check whether what a configuration names exists on this host.
 * @param path directories of programs that are named without one, separated by colons
 * @returns functions that take a name or path, and return undefined if it is usable, or the problem as text, as `there is no
 *   /etc/x.pem`. Without permission to check, a path counts as usable. `programForUnprivilegedUser` is absent if the agent is
 *   not root
 * Neither this function nor the returned ones throw for what is missing or unreadable on the host.
 */
export function createHostFactSource(path: string = defaultPath): HostFactSource {
  return {
    program: (name) => {
      if (name.startsWith('/')) return findExecutionObstacle(name);
      const places = path.split(':').map((directory) => join(directory, name));
      return places.some((place) => findExecutionObstacle(place) === undefined)
        ? undefined
        : `the program ${name} is not in ${path}`;
    },
    ...(process.getuid?.() === 0
      ? { programForUnprivilegedUser: (name) => findUnprivilegedObstacle(name, path) }
      : {}),
    file: (file) => (mayExist(file) ? undefined : `there is no ${file}`),
    authorities: (file) => {
      if (!mayExist(file)) return `there is no ${file}`;
      const read = readAuthorityFile(file);
      const isUnseen = read.kind === 'refused' && read.why === 'EACCES';
      return read.kind === 'read' || isUnseen ? undefined : `${file} cannot be used: ${read.why}`;
    },
    group: (name) => {
      try {
        resolveGroup(name);
        return undefined;
      } catch (error) {
        if (!isWritError(error)) throw error;
        return error.message;
      }
    },
    directory: (directory) => (mayExist(directory) ? undefined : `there is no directory ${directory}`),
  };
}

function findExecutionObstacle(program: string): string | undefined {
  const stat = readIfPermitted(() => statSync(program, { throwIfNoEntry: false }));
  if (stat === 'unseen') return undefined;
  if (stat === undefined) return `there is no program ${program}`;
  const mayRun = stat.isFile() && readIfPermitted(() => accessSync(program, constants.X_OK)) !== 'unseen';
  return mayRun ? undefined : `${program} is not executable`;
}

/** A missing program is another finding. */
function findUnprivilegedObstacle(name: string, path: string): string | undefined {
  const places = name.startsWith('/') ? [name] : path.split(':').map((directory) => join(directory, name));
  const program = places.find((place) => findExecutionObstacle(place) === undefined);
  if (program === undefined) return undefined;
  const real = readIfPermitted(() => realpathSync(program));
  const closed = readIfPermitted(() => findClosedPart(real));
  return closed === undefined || closed === 'unseen'
    ? undefined
    : `the sandbox runs it as another user, which may not execute ${closed}`;
}

/** @returns the program, or a directory above it, that gives others no right to execute */
function findClosedPart(program: string): string | undefined {
  for (let part = program; part !== '/'; part = dirname(part))
    if ((statSync(part).mode & 0o001) === 0) return part;
  return undefined;
}

function mayExist(path: string): boolean {
  return readIfPermitted(() => statSync(path, { throwIfNoEntry: false })) !== undefined;
}

/** @returns the result of `read`; `unseen` without permission */
function readIfPermitted<T>(read: () => T): T | 'unseen' {
  try {
    return read();
  } catch (error) {
    if (isSystemError(error)) return 'unseen';
    throw error;
  }
}
