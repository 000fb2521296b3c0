// Names of people for keys, as `anna`: in the signed part of the file that lists the keys, so that they are
// under its signatures, and in no key id. For people only: nothing is ever decided by a name.

/** The longest name, and no character that could hide, turn or break a line. */
const namePattern = /^[\p{L}\p{N}][\p{L}\p{M}\p{N} ._@'-]{0,63}$/u;

/** @returns true for a name that can be shown as it is, on one line */
export function isSignerName(value: unknown): value is string {
  return typeof value === 'string' && namePattern.test(value) && value === value.trim();
}

/**
 * @param signed the signed part of a root, or of targets that delegate
 * @returns names by key id, as `writ.signers` has them; what is no name is left out
 */
export function signersOf(signed: object): ReadonlyMap<string, string> {
  const { writ } = signed as { readonly writ?: { readonly signers?: unknown } | null };
  const signers = typeof writ === 'object' && writ !== null ? writ.signers : undefined;
  if (typeof signers !== 'object' || signers === null) return new Map();
  return new Map(
    Object.entries(signers).filter((entry): entry is [string, string] => isSignerName(entry[1])),
  );
}

/** @returns the name of a key, or the beginning of its id */
export function nameOfKey(signed: object, keyid: string): string {
  return signersOf(signed).get(keyid) ?? shortKeyId(keyid);
}

/** @returns eight digits, for people; identity is the whole id */
export function shortKeyId(keyid: string): string {
  return keyid.slice(0, 8);
}
