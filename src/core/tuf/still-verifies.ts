// Decides whether a retained release is still trusted. Either the current metadata lists its digest, or the metadata in its release
// record has enough signatures by keys that the current root and delegations list. Expiry is ignored: a release loses trust with its
// keys and not with time. Pure.
import { isWritError } from '../errors.js';
import { delegationAuthority, isVouched, isVouchedByRoot } from './metadata-checks.js';
import {
  countOthers,
  matchesPath,
  maxOtherBytes,
  maxVisitedRoles,
  searchTarget,
  type WantedRole,
} from './target-search.js';
import { recallFile, settleRoot, type TrustedSet } from './trusted-set.js';
import type { ParsedFile, TargetFile } from './tuf-metadata.js';

/** The proof of a release in its release record. */
export interface ReleaseProof {
  /** Target path: `<bundle>/<channel>.tar.br`. */
  readonly path: string;
  /** Of the archive, in bytes. */
  readonly length: number;
  /** Of the archive, in hex. */
  readonly sha256: string;
  /** Name of the role that signed its entry. */
  readonly role: string;
  /** The exact bytes of that role's file. Read only if the verdict depends on it. */
  metadata(): Uint8Array | undefined;
  /** `record`: only the record may prove the release. By default the current metadata may list it instead. */
  readonly evidence?: 'record';
}

export type StillVerdict =
  | { readonly kind: 'verifies'; readonly by: 'listed' | 'record' }
  | { readonly kind: 'untrusted'; readonly reason: string };

/** Reads the stored file of a delegated role; undefined if it is missing or damaged. Its signatures are not verified yet. */
export type KeptRole = (name: string) => ParsedFile<'targets'> | undefined;

/**
 * @param known may be in the middle of a refresh: files that the newest root does not authorize are ignored
 * @param kept reads the stored file of a delegated role
 * @returns whether current keys prove the release: by the current listing, or by the metadata in its record; else the
 * reason
 */
export function stillVerifies(known: TrustedSet, proof: ReleaseProof, kept: KeptRole): StillVerdict {
  const set = settleRoot(known);
  if (proof.evidence === undefined && isListed(set, proof, kept)) return { kind: 'verifies', by: 'listed' };
  const file = recallFile(proof.metadata(), 'targets', proof.role);
  if (file === undefined) return untrusted('is not listed, and the metadata in its record cannot be read');
  if (!isEntry(file.signed.targets, proof)) return untrusted('is not listed, not even in its own record');
  const vouched =
    proof.role === 'targets' ? isVouchedByRoot(file, set.root) : isDelegated(set, file, proof, kept);
  if (vouched) return { kind: 'verifies', by: 'record' };
  return untrusted(`is not listed, and ${proof.role} in its record is not signed by current keys`);
}

function untrusted(reason: string): StillVerdict {
  return { kind: 'untrusted', reason };
}

function isEntry(
  targets: Readonly<Record<string, TargetFile>>,
  { path, sha256, length }: ReleaseProof,
): boolean {
  const entry = Object.hasOwn(targets, path) ? targets[path] : undefined;
  return entry !== undefined && entry.hashes['sha256'] === sha256 && entry.length === length;
}

function isListed(set: TrustedSet, proof: ReleaseProof, kept: KeptRole): boolean {
  if (set.targets === undefined) return false;
  try {
    const search = searchTarget(set.targets, proof.path);
    let step = search.next();
    while (step.done !== true) {
      const file = vouchedRole(step.value, kept);
      if (file === undefined) return false;
      step = search.next(file);
    }
    return step.value !== undefined && isEntry({ [proof.path]: step.value.file }, proof);
  } catch (error) {
    // The search exceeded its bounds, so that the entry is not proven.
    if (isWritError(error)) return false;
    throw error;
  }
}

/** @returns the stored file of the role, if this delegator is an authority with enough signatures for it */
function vouchedRole({ delegator, role }: WantedRole, kept: KeptRole): ParsedFile<'targets'> | undefined {
  const file = kept(role.name);
  return file !== undefined && isVouched(file, delegationAuthority(delegator, role)) ? file : undefined;
}

/** @returns whether a current delegation for this path gives the role the keys that signed the file in the record */
function isDelegated(
  { targets }: TrustedSet,
  file: ParsedFile<'targets'>,
  { path, role: name }: ReleaseProof,
  kept: KeptRole,
): boolean {
  if (targets === undefined) return false;
  const visited = new Set<string>();
  const others = countOthers();
  const waiting = delegationsOf(targets, path);
  for (let wanted = waiting.shift(); wanted !== undefined; wanted = waiting.shift()) {
    const { delegator, role } = wanted;
    if (role.name === name && isVouched(file, delegationAuthority(delegator, role))) return true;
    if (visited.has(role.name) || visited.size === maxVisitedRoles) continue;
    visited.add(role.name);
    const next = vouchedRole(wanted, kept);
    if (next === undefined || others(next) > maxOtherBytes) continue;
    // Pushed one by one, because hundreds of thousands of arguments in one call exhaust the stack.
    for (const one of delegationsOf(next, path)) waiting.push(one);
  }
  return false;
}

function delegationsOf(delegator: ParsedFile<'targets'>, path: string): WantedRole[] {
  const roles = delegator.signed.delegations?.roles ?? [];
  return roles.filter((role) => matchesPath(role, path)).map((role) => ({ delegator, role }));
}
