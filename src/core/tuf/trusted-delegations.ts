// The rules of trust for delegated roles (TUF 1.0.34 section 5.6.7): each file is judged by the snapshot, which
// names its version, and by the one delegator on the way to it. Pure, as trusted-set, which it continues.
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
 * What the snapshot says about a delegated role: it bounds the fetch.
 * @throws WritError METADATA_MIX when it is not listed; then it is not even asked for (5.6.7)
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
 * Judges the file of a delegated role (5.6 with the delegator in the place of the root).
 * @param delegator already trusted on the way from the top-level targets
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

/** One file of the greatest size and small ones beside it. */
export const maxHeldBytes = 6_000_000;

/**
 * Takes up a file that trustDelegated or keptDelegated has found good. Where all that is held would be too much, holding
 * begins again with this file, and the others are read again when they are needed: the searches for many bundles would
 * otherwise fill the memory of a host, each within its bounds.
 */
export function withDelegated(set: TrustedSet, file: ParsedFile<'targets'>): TrustedSet {
  const held = new Map(set.delegated).set(file.name, file);
  let bytes = 0;
  for (const one of held.values()) bytes += one.bytes.length;
  return { ...set, delegated: bytes > maxHeldBytes ? new Map([[file.name, file]]) : held };
}

/**
 * Judges a file that was kept: is it the one that the snapshot names, under the keys of this very delegator?
 * @returns undefined where it has to be fetched; expiry is not asked (requireFreshDelegated)
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
 * Judges the file of a role that was kept and is used again without a fetch: it may have expired since.
 * @throws WritError METADATA_EXPIRED with the name of the role
 */
export function requireFreshDelegated(set: TrustedSet, file: ParsedFile<'targets'>, nowMs: number): void {
  requireFresh(file, judgedAtMs(set, nowMs));
}
