// What a release requires of the Writ that takes it: the member `requires` of `custom.writ`, a list of features by name. Owns its
// shape, the one list of what this Writ knows, and the verdict on a release that requires more (docs/adr/0043). A host that took it
// all the same would follow a plan that it cannot read.
import { WritError } from '../errors.js';
import { writVersion } from '../version.js';

/** Every feature that a release may require of this version of Writ; a host that is given another list judges by that. */
export const knownFeatures: readonly string[] = [];

/** Of one release: hosts keep them in the record of every release. */
export const maxRequires = 16;

/** As `waves-1`. Fixed for all versions: what a later one writes outside of it would be malformed here, and not unknown. */
const featurePattern = /^[a-z0-9][a-z0-9.-]{0,63}$/;

/** @returns true for a name of a feature, known or not */
export function isFeature(value: unknown): value is string {
  return typeof value === 'string' && featurePattern.test(value);
}

/**
 * @param names as the metadata has them: ascending and each once, so that one demand has one text
 * @returns undefined for what no publisher of ours writes
 */
export function parseRequires(names: unknown): readonly string[] | undefined {
  if (!Array.isArray(names) || names.length === 0 || names.length > maxRequires) return undefined;
  const isAbove = (name: string, index: number): boolean => index === 0 || name > names[index - 1];
  return names.every(isFeature) && names.every(isAbove) ? names : undefined;
}

/** @returns as the metadata has them; undefined where nothing is required */
export function canonicalRequires(names: readonly string[]): readonly string[] | undefined {
  const unique = [...new Set(names)].sort();
  return unique.length === 0 ? undefined : unique;
}

/** @returns those that this host does not know */
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
 * @param known what this host knows
 * @returns why the release is not taken, by force or without; undefined where the host knows all that it requires
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
