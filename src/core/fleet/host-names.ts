// Which texts identify a host by its key. No host may have such a text as its name: a host could otherwise take the name of another
// host's key, and a query by that key would find the wrong host. Pure.

/** Hex digits of a complete key, which is the digest of a public key. */
const keyDigits = 64;
const minPrefixDigits = 8;
/** OPA processes without Writ have keys of this form: `opa/TOKEN/ID`. */
const opaKeyStart = 'opa/';

/** The form of a key, for messages. */
export const keyLike = `a key (${keyDigits} hex digits, or ${opaKeyStart}...)`;

/** How a retired OPA is accepted again: it has no key, and its token and id identify it. */
export const retiredOpaHint =
  'Its status is accepted again with another `id` (OPA makes one at each start) or with another token (`writ fleet token create --for opa`).';

/** @returns true for a complete key; such a text is never compared with names */
export function isHostKey(text: string): boolean {
  return text.startsWith(opaKeyStart) || new RegExp(`^[0-9a-f]{${keyDigits}}$`).test(text);
}

/** @returns whether the key is that of an OPA process without Writ, as `opa/TOKEN/ID` */
export function isOpaKey(key: string): boolean {
  return key.startsWith(opaKeyStart);
}

/** @returns true for a possible prefix of a key; the name of a container may have this form too */
export function mayBeginHostKey(text: string): boolean {
  return new RegExp(`^[0-9a-f]{${minPrefixDigits},${keyDigits - 1}}$`).test(text);
}
