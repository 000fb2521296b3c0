// The rules of a delegation: a name that no other role has, keys that can sign, patterns that no other role has, and no
// release that hosts would lose without a request. Pure over a repository state.
import { WritError } from '../../core/errors.js';
import { patternsOverlap } from '../../core/tuf/pattern-overlap.js';
import type { DelegatedRole } from '../../core/tuf/tuf-metadata.js';
import type { PublicKey } from '../keys/public-key.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import type { RepositoryState } from '../repository/repository-state.js';

export interface DelegationRequest {
  readonly role: string;
  /** Absent: the delegation ends. */
  readonly change?: {
    /** Absent members stay unchanged. */
    readonly paths?: readonly string[] | undefined;
    readonly keys?: readonly PublicKey[] | undefined;
    readonly threshold?: number | undefined;
    readonly validityMs?: number | undefined;
  };
  /** The operator permits that releases move from one role to another. */
  readonly shouldHandOver: boolean;
  /** Hand over waiting releases too, although their signers are not trusted after the change; false by default. */
  readonly shouldIncludeWaiting?: boolean | undefined;
}

const reserved: readonly string[] = ['root', 'timestamp', 'snapshot', 'targets', 'mirrors', 'role'];
const roleName = /^[a-z][a-z0-9-]{0,62}$/;

/**
 * @param role the name of a team's new role
 * @throws WritError DELEGATION_REFUSED for a reserved or invalid name, or one that another role delegates
 */
export function requireName({ delegated, targets }: RepositoryState, role: string): void {
  if (!roleName.test(role) || reserved.includes(role)) {
    const hint =
      'A role name has up to 63 characters of a-z 0-9 -, begins with a letter, and is not a top-level role.';
    throw new WritError('DELEGATION_REFUSED', `${role.slice(0, 80)} cannot be the name of a team's role`, {
      facts: { role: role.slice(0, 80) },
      hint,
    });
  }
  // Two delegators with different keys for one role: a client would use the one that its search finds first.
  const other = [...delegated.values()].find((file) =>
    delegatedRolesOf(file).some(({ name }) => name === role),
  );
  if (other === undefined) return;
  throw refused(`${other.name} delegates to ${role} too`, { role, by: [targets.name, other.name] });
}

/**
 * Checks the keys and the threshold of a team's role. New keys of the root and of the online roles are refused: root
 * keys stay offline, and a thief of the server could sign for the team.
 * @throws WritError DELEGATION_REFUSED; USAGE without a key, or for a threshold that the keys cannot reach
 */
export function requireKeys(
  { live }: RepositoryState,
  { name, keyids, threshold }: DelegatedRole,
  { change }: DelegationRequest,
): void {
  if (keyids.length === 0) {
    throw new WritError('USAGE', `${name} needs a key`, {
      hint: "Give the team's public key with --key FILE.",
    });
  }
  if (threshold < 1 || threshold > keyids.length) {
    throw new WritError('USAGE', 'the threshold must be from 1 to the number of keys', {
      facts: { expected: keyids.length, actual: threshold },
    });
  }
  const { root, snapshot, timestamp } = live.root.signed.roles;
  // Attack: a thief of the server could sign for the team.
  const online = change?.keys?.find((key) => [...snapshot.keyids, ...timestamp.keyids].includes(key.keyId));
  if (online !== undefined) {
    throw refused(`${online.name} is a key of the server`, { role: name, keyId: online.keyId });
  }
  // A root key must stay offline, and a team needs its key often.
  const rootKey = change?.keys?.find((key) => root.keyids.includes(key.keyId));
  if (rootKey === undefined) return;
  throw refused(`${rootKey.name} is a root key`, { role: name, keyId: rootKey.keyId });
}

const maxPatterns = 100;
const maxPatternCharacters = 200;
/** The form of each target path, `<bundle>/<channel>.tar.br`. */
const anyTarget = '*/*.tar.br';

/** False also for `../*` and `./*`, because no name of a bundle or channel begins with a dot, a dash or an underscore. */
function canMatch(pattern: string): boolean {
  const segments = pattern.split('/');
  return patternsOverlap(pattern, anyTarget) && segments.every((segment) => !/^[._-]/.test(segment));
}

/**
 * Checks the patterns of paths that a team's role may list.
 * @throws WritError DELEGATION_REFUSED; USAGE without a pattern
 */
export function requirePaths({ targets }: RepositoryState, role: DelegatedRole): void {
  const paths = role.paths ?? [];
  if (paths.length === 0) {
    throw new WritError('USAGE', `${role.name} needs paths`, {
      hint: "For example --paths 'dns-*/*'; a path is BUNDLE/CHANNEL.tar.br.",
    });
  }
  if (paths.length > maxPatterns)
    throw refused(`${paths.length} patterns are too many`, { expected: maxPatterns });
  for (const pattern of paths) {
    if (pattern.length > maxPatternCharacters || !canMatch(pattern)) {
      throw refused(`no release can match ${pattern.slice(0, 80)}`, { pattern: pattern.slice(0, 80) });
    }
  }
  for (const other of delegatedRolesOf(targets).filter(({ name }) => name !== role.name)) {
    requireDisjoint(role, other);
  }
}

/** With two roles for one path, hosts would use the first one and never find the releases of the other. */
function requireDisjoint(role: DelegatedRole, other: DelegatedRole): void {
  const facts = { role: role.name, other: other.name };
  if (other.paths === undefined)
    throw refused(`${other.name} has paths by their digests, which cannot be compared`, facts);
  for (const pattern of role.paths ?? []) {
    const theirs = other.paths.find((one) => patternsOverlap(pattern, one));
    if (theirs !== undefined) {
      throw refused(`${pattern} and ${theirs} of ${other.name} have paths in common`, {
        ...facts,
        pattern,
        theirs,
      });
    }
  }
}

/** Moves releases between roles only on request, because another team would sign them, or hosts would lose them. */
export function requireHandOver(
  { shouldHandOver }: DelegationRequest,
  { taken, left, role }: { taken: readonly string[]; left: readonly string[]; role: string },
): void {
  if (shouldHandOver || taken.length + left.length === 0) return;
  const paths = [...taken, ...left];
  const [what, hint] =
    taken.length > 0
      ? [`the targets list ${taken[0]}, which would always hide what ${role} publishes`, 'to the role']
      : [`${role} lists ${left[0]}, which hosts would no longer find`, 'to the top-level targets'];
  throw new WritError('DELEGATION_REFUSED', what, {
    facts: { role, targets: paths.slice(0, 20), count: paths.length },
    hint: `Give --hand-over to move these releases ${hint}.`,
  });
}

function refused(message: string, facts: Readonly<Record<string, unknown>>): WritError {
  return new WritError('DELEGATION_REFUSED', message, { facts });
}
