// Counts the signatures of a proposal, lists the missing signers, and adds signatures. The thresholds of the old and of the
// new root are counted separately, because hosts require both. Only signatures that verify are counted, kept or passed on.
import { keyId, verifySignature } from '../../core/tuf/signature-schemes.js';
import type { MetadataKey, MetadataSignature, ParsedFile, RootSigned } from '../../core/tuf/tuf-metadata.js';
import { checkedSignature, encodeMetadata, type Signer } from '../keys/signer.js';
import { shortKeyId } from '../keys/signer-names.js';
import type { Proposal } from './proposal-file.js';
import { type NamedKey, nameIn } from './root-difference.js';

export type Tallies = ReturnType<typeof tallySignatures>;
export type Tally = Tallies['old'];

/** A proposal with its base, which the reader trusts. */
export interface TrustedProposal {
  readonly proposal: Proposal;
  readonly base: ParsedFile<'root'>;
}

/**
 * @returns the keys that have signed and those that have not, for the old root and for the new one; only valid signatures
 *   count
 */
export function tallySignatures(trusted: TrustedProposal) {
  const { base, proposal } = trusted;
  const next = proposal.root.signed;
  const signed = new Set(validSignatures(trusted).map(({ keyid }) => keyid));
  const tally = ({ roles }: RootSigned) => {
    const { keyids, threshold } = roles.root;
    const keys: readonly NamedKey[] = keyids.map((id) => ({
      keyId: id,
      name: nameIn(base.signed, next, id),
    }));
    return {
      threshold,
      keys: keyids.length,
      signed: keys.filter(({ keyId: id }) => signed.has(id)),
      missing: keys.filter(({ keyId: id }) => !signed.has(id)),
    };
  };
  return { old: tally(base.signed), next: tally(next) };
}

/** @returns true when both thresholds are reached */
export function isComplete({ old, next }: Tallies): boolean {
  return old.signed.length >= old.threshold && next.signed.length >= next.threshold;
}

/** @returns the signers that are still needed, by name; empty when both thresholds are reached */
export function listMissingSigners({ old, next }: Tallies): { count: number; of: readonly NamedKey[] }[] {
  const need = (tally: Tally): number => Math.max(tally.threshold - tally.signed.length, 0);
  const both = old.missing.filter(({ keyId: id }) => next.missing.some((one) => one.keyId === id));
  const most = Math.max(need(old), need(next));
  // Signers that count for both roots are listed alone where they are enough, because fewer people have to sign then.
  if (need(old) > 0 && need(next) > 0 && both.length >= most) return [{ count: most, of: both }];
  return [
    { count: need(old), of: old.missing },
    { count: need(next), of: next.missing },
  ].filter(({ count }) => count > 0);
}

/** @returns the name, with the first characters of the key id where one name has an old and a new key */
export function labelOf({ old, next }: Tallies, { keyId: id, name }: NamedKey): string {
  const all = [old, next].flatMap(({ signed, missing }) => [...signed, ...missing]);
  const isShared = all.some((one) => one.name === name && one.keyId !== id);
  return isShared ? `${name} (${shortKeyId(id)})` : name;
}

/** @returns the valid signatures by root keys of the base or of the proposed root, one for each key */
export function validSignatures({ base, proposal }: TrustedProposal): MetadataSignature[] {
  const keys = signingKeys({ base, proposal });
  const seen = new Set<string>();
  return proposal.root.signatures.filter(({ keyid, sig }) => {
    const key = keys.get(keyid);
    if (key === undefined || seen.has(keyid)) return false;
    if (!verifySignature(key, proposal.root.signedBytes, sig)) return false;
    seen.add(keyid);
    return true;
  });
}

/** @returns the root keys of both roots, by key id */
export function signingKeys({ base, proposal }: TrustedProposal): ReadonlyMap<string, MetadataKey> {
  const both = [base.signed, proposal.root.signed];
  return new Map(
    both.flatMap(({ keys, roles }) =>
      roles.root.keyids.flatMap((id) => {
        const key = Object.hasOwn(keys, id) ? keys[id] : undefined;
        return key === undefined || keyId(key) !== id ? [] : [[id, key] as const];
      }),
    ),
  );
}

/**
 * Adds a signature of each signer that has not signed yet.
 * @returns the new proposal and the added signatures
 * @throws WritError SIGNER_FAILED, SIGNER_WRONG, SIGNATURE_DISAGREEMENT
 */
export async function addSignatures(
  trusted: TrustedProposal,
  signers: readonly Signer[],
): Promise<{ readonly proposal: Proposal; readonly added: readonly MetadataSignature[] }> {
  const { proposal } = trusted;
  const signatures = validSignatures(trusted);
  const added: MetadataSignature[] = [];
  for (const signer of signers) {
    const bytes = proposal.root.signedBytes;
    const signature = checkedSignature(signer, bytes, await signer.sign(bytes));
    if (signatures.some(({ keyid }) => keyid === signature.keyid)) continue;
    signatures.push(signature);
    added.push(signature);
  }
  return { proposal: withSignatures(proposal, signatures), added };
}

/** @returns the proposal with exactly these signatures */
export function withSignatures(proposal: Proposal, signatures: readonly MetadataSignature[]): Proposal {
  const bytes = encodeMetadata({ signatures, signed: proposal.root.signed });
  return { ...proposal, root: { ...proposal.root, signatures, bytes } };
}
