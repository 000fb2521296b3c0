// Names that Writ gives to what is not complete yet, or not needed any more. Owns the names alone.

export const temporaryPrefix = '.writ-tmp-';

/** In a directory of which a complete copy has another name. */
export const movedMark = `${temporaryPrefix}moved`;

/** True for a name that only a crash can have left behind; such a file may always be removed. */
export function isTemporaryName(name: string): boolean {
  return name.startsWith(temporaryPrefix);
}
