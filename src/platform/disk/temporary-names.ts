// Names of files that are incomplete or no longer needed.

export const temporaryPrefix = '.writ-tmp-';

/** Marks a directory that was copied completely to its new name. */
export const movedMark = `${temporaryPrefix}moved`;

/** @returns true for a name that only a crash leaves behind; such a file may always be removed */
export function isTemporaryName(name: string): boolean {
  return name.startsWith(temporaryPrefix);
}
