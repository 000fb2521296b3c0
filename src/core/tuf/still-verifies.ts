// Is a release that a host keeps still vouched for? The metadata of today lists its digest,
// or the metadata kept in its record is signed to the threshold by keys that the root and the delegations of today
// still hold. Expiry is not asked: a release does not turn bad with time, but with the keys behind it. Pure.
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

/** What a release record proves a release with. */
export interface ReleaseProof {
  /** As the targets name it: `<bundle>/<channel>.tar.br`. */
  readonly path: string;
  /** Of the archive, in bytes. */
  readonly length: number;
  /** Of the archive, in hex. */
  readonly sha256: string;
  /** Name of the role that listed it. */
  readonly role: string;
  /** That role's file, byte for byte. Read only when the verdict depends on it. */
  metadata(): Uint8Array | undefined;
  /** The record alone must prove the release; by default the current metadata may list it instead. */
  readonly evidence?: 'record';
}

export type StillVerdict =
  | { readonly kind: 'verifies'; readonly by: 'listed' | 'record' }
  | { readonly kind: 'untrusted'; readonly reason: string };

/** The file of a delegated role as this host keeps it, if it is complete; whether anybody vouches for it is not known yet. */
export type KeptRole = (name: string) => ParsedFile<'targets'> | undefined;

/** @param known also in the middle of a refresh: what the newest root does not vouch for counts nothing here */
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
    // Too many roles: nobody can say that it is listed.
    if (isWritError(error)) return false;
    throw error;
  }
}

/** The kept file of a role, if this very delegator vouches for it. */
function vouchedRole({ delegator, role }: WantedRole, kept: KeptRole): ParsedFile<'targets'> | undefined {
  const file = kept(role.name);
  return file !== undefined && isVouched(file, delegationAuthority(delegator, role)) ? file : undefined;
}

/** A delegation of today, on the way to this path, names the role and keys that signed the record's file. */
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
    // One by one: as arguments of one call, hundreds of thousands would exhaust the stack.
    for (const one of delegationsOf(next, path)) waiting.push(one);
  }
  return false;
}

function delegationsOf(delegator: ParsedFile<'targets'>, path: string): WantedRole[] {
  const roles = delegator.signed.delegations?.roles ?? [];
  return roles.filter((role) => matchesPath(role, path)).map((role) => ({ delegator, role }));
}
