// Which texts name a host by its key: those that no host may have as its name, or a stranger could stand in the way of the host
// that has the key. Pure.

/** Hex digits of a whole key, which is the digest of a public key; and of the shortest beginning that names one. */
const keyDigits = 64;
const minPrefixDigits = 8;
/** Plain OPAs have keys of their own, as `opa/TOKEN/ID`. */
const opaKeyStart = 'opa/';

/** For messages. */
export const keyLike = `a key (${keyDigits} hex digits, or ${opaKeyStart}...)`;

/** How a retired OPA is shown again: it has no key, and its token and id name it. */
export const retiredOpaHint =
  'Its status is accepted again with another `id` (OPA makes one at each start) or with another token (`writ fleet token create --for opa`).';

/** @returns true for a whole key: nothing else is looked for by it */
export function isHostKey(text: string): boolean {
  return text.startsWith(opaKeyStart) || new RegExp(`^[0-9a-f]{${keyDigits}}$`).test(text);
}

export function isOpaKey(key: string): boolean {
  return key.startsWith(opaKeyStart);
}

/** @returns true for what may be the beginning of a key; the name of a container may look like one too */
export function mayBeginHostKey(text: string): boolean {
  return new RegExp(`^[0-9a-f]{${minPrefixDigits},${keyDigits - 1}}$`).test(text);
}
