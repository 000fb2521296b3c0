// Required features: the names in the member `requires` of `custom.writ`, the features that this version knows, and the verdict on a
// release that requires more (docs/adr/0043). A host that activated such a release would follow rules that it cannot read.
import { WritError } from '../errors.js';
import { writVersion } from '../version.js';

/** The features that this version knows. A host that is given another list uses that one. */
export const knownFeatures: readonly string[] = [];

/** Number of features of one release; hosts store them in the record of each release. */
export const maxRequires = 16;

/** As `waves-1`. The pattern is fixed for all versions: a later name outside of it would be malformed here, and not unknown. */
const featurePattern = /^[a-z0-9][a-z0-9.-]{0,63}$/;

/** @returns true for the name of a feature, known or not */
export function isFeature(value: unknown): value is string {
  return typeof value === 'string' && featurePattern.test(value);
}

/**
 * @param names from the metadata: ascending and unique, so that equal requirements have equal texts
 * @returns undefined for a list that no publisher of Writ writes
 */
export function parseRequires(names: unknown): readonly string[] | undefined {
  if (!Array.isArray(names) || names.length === 0 || names.length > maxRequires) return undefined;
  const isAbove = (name: string, index: number): boolean => index === 0 || name > names[index - 1];
  return names.every(isFeature) && names.every(isAbove) ? names : undefined;
}

/** @returns the list for the metadata; undefined if nothing is required */
export function canonicalRequires(names: readonly string[]): readonly string[] | undefined {
  const unique = [...new Set(names)].sort();
  return unique.length === 0 ? undefined : unique;
}

/** @returns the names of `requires` that this host does not know */
export function unknownFeatures(
  requires: readonly string[] = [],
  known: readonly string[] = knownFeatures,
): readonly string[] {
  return requires.filter((name) => !known.includes(name));
}

interface DemandingRelease {
  readonly bundle: string;
  readonly serial: number;
  readonly requires?: readonly string[];
}

/**
 * @param known features that this host knows
 * @returns why the release is not activated, even if forced; undefined if the host knows all that it requires
 */
export function judgeRequires(
  { bundle, serial, requires }: DemandingRelease,
  known: readonly string[] = knownFeatures,
): WritError | undefined {
  const unknown = unknownFeatures(requires, known);
  if (unknown.length === 0) return undefined;
  const what = `${bundle} ${serial} requires ${unknown.join(', ')}`;
  return new WritError('REQUIRES_UNKNOWN', `${what}, which Writ ${writVersion} of this host does not know`, {
    facts: { bundle, serial, unknown, known, version: writVersion },
  });
}
