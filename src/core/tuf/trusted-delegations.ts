// The verification of delegated roles (TUF 1.0.34 section 5.6.7). The snapshot lists the version of each file, and the delegator in
// the current search lists its keys. Continues trusted-set.ts. Pure.
import {
  delegationAuthority,
  isNamedBy,
  isVouched,
  mix,
  requireDigests,
  requireFresh,
  requireThreshold,
  requireVersion,
} from './metadata-checks.js';
import type { WantedRole } from './target-search.js';
import { judgedAtMs, recallFile, requireTrusted, type TrustedSet } from './trusted-set.js';
import { type DelegatedRole, type MetaFile, type ParsedFile, parseEnvelope } from './tuf-metadata.js';

/**
 * @returns the entry of a delegated role in the snapshot, which bounds its fetch
 * @throws WritError METADATA_MIX if there is none; the file is then not requested (5.6.7)
 */
export function delegatedMetaOf(set: TrustedSet, role: DelegatedRole): MetaFile {
  const { meta, version } = requireTrusted(set, 'snapshot').signed;
  const name = `${role.name}.json`;
  const entry = Object.hasOwn(meta, name) ? meta[name] : undefined;
  if (entry !== undefined) return entry;
  const hint = `The holders of its keys have not signed it yet: \`writ sign --role ${role.name}\`, then \`writ refresh\` at the publisher.`;
  throw mix(role.name, `snapshot version ${version} does not list it`, name, 'not listed', hint);
}

/**
 * Verifies the fetched file of a delegated role (5.6, with the delegator in place of the root).
 * @param delegator already trusted in this search
 * @returns the file, for withDelegated
 * @throws WritError METADATA_MIX, METADATA_MALFORMED, SIGNATURE_*, METADATA_EXPIRED
 */
export function trustDelegated(
  set: TrustedSet,
  delegator: ParsedFile<'targets'>,
  role: DelegatedRole,
  bytes: Uint8Array,
  nowMs: number,
): ParsedFile<'targets'> {
  const meta = delegatedMetaOf(set, role);
  requireDigests(role.name, meta, bytes);
  const file = parseEnvelope(bytes, 'targets', role.name);
  requireThreshold(file, delegationAuthority(delegator, role));
  requireVersion(role.name, meta, file.signed.version);
  requireFresh(file, judgedAtMs(set, nowMs));
  return file;
}

/** Enough for one file of the greatest size and small ones. */
export const maxHeldBytes = 6_000_000;

/**
 * Adds a verified file of a delegated role to the set. If the files together exceed maxHeldBytes, the set keeps only this one, and
 * the others are read again when needed. Without this bound the searches for many bundles, each within its own bounds, would exhaust
 * the memory of a host.
 */
export function withDelegated(set: TrustedSet, file: ParsedFile<'targets'>): TrustedSet {
  const held = new Map(set.delegated).set(file.name, file);
  let bytes = 0;
  for (const one of held.values()) bytes += one.bytes.length;
  return { ...set, delegated: bytes > maxHeldBytes ? new Map([[file.name, file]]) : held };
}

/**
 * Verifies a stored file: the snapshot lists it, and the keys of this delegator signed it. Expiry is not checked, see
 * requireFreshDelegated.
 * @returns undefined if the file must be fetched
 * @throws WritError METADATA_MIX
 */
export function keptDelegated(
  set: TrustedSet,
  { delegator, role }: WantedRole,
  stored: () => Uint8Array | undefined,
): ParsedFile<'targets'> | undefined {
  const meta = delegatedMetaOf(set, role);
  const authority = delegationAuthority(delegator, role);
  const isKept = (file: ParsedFile<'targets'> | undefined): boolean =>
    file !== undefined && isNamedBy(meta, file) && isVouched(file, authority);
  const known = set.delegated?.get(role.name);
  if (isKept(known)) return known;
  const recalled = recallFile(stored(), 'targets', role.name);
  return isKept(recalled) ? recalled : undefined;
}

/**
 * Checks the expiry of a stored file that is used without a fetch.
 * @throws WritError METADATA_EXPIRED with the name of the role
 */
export function requireFreshDelegated(set: TrustedSet, file: ParsedFile<'targets'>, nowMs: number): void {
  requireFresh(file, judgedAtMs(set, nowMs));
}
