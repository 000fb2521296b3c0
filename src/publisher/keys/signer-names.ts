// Names for keys, as `anna`. They are in the signed part of the file that lists the keys, so that the signatures cover
// them, and not in the key ids. For people only: no decision depends on a name.

/** Bounds the length, and excludes characters that could hide, reverse or break a line. */
const namePattern = /^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._@'-]{0,63}$/u;

/** @returns true for a name that can be shown unchanged on one line */
export function isSignerName(value: unknown): value is string {
  return typeof value === 'string' && namePattern.test(value) && value === value.trim();
}

/**
 * @param signed the signed part of a root, or of targets that delegate
 * @returns the names by key id, from `writ.signers`; malformed names are left out
 */
export function signersOf(signed: object): ReadonlyMap<string, string> {
  const { writ } = signed as { readonly writ?: { readonly signers?: unknown } | null };
  const signers = typeof writ === 'object' && writ !== null ? writ.signers : undefined;
  if (typeof signers !== 'object' || signers === null) return new Map();
  return new Map(
    Object.entries(signers).filter((entry): entry is [string, string] => isSignerName(entry[1])),
  );
}

/** @returns the name of a key; without one, the first characters of its id */
export function nameOfKey(signed: object, keyid: string): string {
  return signersOf(signed).get(keyid) ?? shortKeyId(keyid);
}

/** @returns eight digits, for people; only the complete id identifies a key */
export function shortKeyId(keyid: string): string {
  return keyid.slice(0, 8);
}
