// The search for a target through delegations (specification 5.6.7): depth first, in the order of the delegations, each role once.
// It decides which role is the authority for a path. The caller fetches and verifies the files of roles. Pure.
import { createHash } from 'node:crypto';
import { WritError } from '../errors.js';
import { matchesPattern } from './path-pattern.js';
import type { DelegatedRole, ParsedFile, TargetFile } from './tuf-metadata.js';

/** The role with the file that the search needs next, and the delegator with the keys that must verify it. */
export interface WantedRole {
  readonly delegator: ParsedFile<'targets'>;
  readonly role: DelegatedRole;
}

export interface FoundTarget {
  readonly path: string;
  readonly file: TargetFile;
  /** The chain of delegations: from the top-level targets to the file with the entry. */
  readonly chain: readonly ParsedFile<'targets'>[];
}

/** Number of delegated roles that one search may visit; the same bound as in other TUF clients. */
export const maxVisitedRoles = 32;
/**
 * Sum of the bytes of these files without the greatest one, which may have as many as targets. Parsing takes ten times the size of a
 * file, and two of the greatest size would exceed the memory of an agent with 256 MB.
 */
export const maxOtherBytes = 2_000_000;

/**
 * Searches one path. The caller must answer each yielded role with `next(file)`, and must end the search with an error if it cannot
 * trust the file. If the search continued, an attacker who withholds a file could choose which role is the authority.
 * @param targets the trusted top-level targets
 * @returns the first entry in the order of the search; undefined if no role lists the path
 * @throws WritError DELEGATION_LIMIT if the search would exceed its bounds
 */
export function* searchTarget(
  targets: ParsedFile<'targets'>,
  path: string,
): Generator<WantedRole, FoundTarget | undefined, ParsedFile<'targets'>> {
  const { visit, weigh } = boundsOf(path, { roles: maxVisitedRoles, otherBytes: maxOtherBytes });
  // A stack instead of recursion, because untrusted metadata determines the depth.
  const waiting: { chain: FoundTarget['chain']; wanted: WantedRole | undefined }[] = [
    { chain: [], wanted: undefined },
  ];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { wanted } = next;
    if (wanted !== undefined && visit(wanted.role.name) === 'again') continue;
    const file = wanted === undefined ? targets : weigh(yield wanted);
    const chain = [...next.chain, file];
    const entry = entryOf(file, path);
    if (entry !== undefined) return { path, file: entry, chain };
    const { roles, end } = delegationsFor(file, path);
    // The roles after a terminating delegation have no authority for its paths.
    if (end === 'terminating') waiting.length = 0;
    for (const role of roles.toReversed()) waiting.push({ chain, wanted: { delegator: file, role } });
  }
  return undefined;
}

/** Bounds on the roles and bytes of one search, because a delegated role can delegate to any number of others. */
function boundsOf(target: string, max: { readonly roles: number; readonly otherBytes: number }) {
  const visited = new Set<string>();
  const others = countOthers();
  return {
    /** Counts a role once in the whole search, so that cycles end and a role with two delegators is visited once. */
    visit: (role: string): 'first' | 'again' => {
      if (visited.has(role)) return 'again';
      if (visited.size === max.roles) throw beyond(target, max.roles, 'delegated roles');
      visited.add(role);
      return 'first';
    },
    weigh: (file: ParsedFile<'targets'>): ParsedFile<'targets'> => {
      if (others(file) <= max.otherBytes) return file;
      throw beyond(target, max.otherBytes, 'bytes of delegated roles beside the greatest');
    },
  };
}

/** @returns a function that adds one file, and returns the bytes of all files so far without the greatest one */
export function countOthers(): (file: ParsedFile<'targets'>) => number {
  let [all, greatest] = [0, 0];
  return ({ bytes }) => {
    all += bytes.length;
    greatest = Math.max(greatest, bytes.length);
    return all - greatest;
  };
}

/** Number of delegated roles that one listing visits. It is greater than for a search, because hashed bins have many roles. */
export const maxListedRoles = 1024;
export const maxListedBytes = 50_000_000;

/**
 * Visits each role that is reachable from the targets once, to list all possible entries. An entry may be without effect: only
 * searchTarget decides which role is the authority for its path. The caller may answer a role with undefined. The roles that are
 * reachable only through it are then left out.
 * @throws WritError DELEGATION_LIMIT
 */
export function* visitRoles(
  targets: ParsedFile<'targets'>,
): Generator<WantedRole, void, ParsedFile<'targets'> | undefined> {
  const max = { roles: maxListedRoles, otherBytes: maxListedBytes };
  const { visit, weigh } = boundsOf('the list of all targets', max);
  const waiting = [targets];
  for (let delegator = waiting.shift(); delegator !== undefined; delegator = waiting.shift()) {
    for (const role of delegator.signed.delegations?.roles ?? []) {
      if (visit(role.name) === 'again') continue;
      const file = yield { delegator, role };
      if (file !== undefined) waiting.push(weigh(file));
    }
  }
}

function entryOf({ signed }: ParsedFile<'targets'>, path: string): TargetFile | undefined {
  return Object.hasOwn(signed.targets, path) ? signed.targets[path] : undefined;
}

/** @returns the roles that a file delegates the path to, up to the first terminating one */
function delegationsFor(
  { signed }: ParsedFile<'targets'>,
  path: string,
): { readonly roles: readonly DelegatedRole[]; readonly end: 'open' | 'terminating' } {
  const matching = (signed.delegations?.roles ?? []).filter((role) => matchesPath(role, path));
  const last = matching.findIndex(({ terminating }) => terminating === true);
  if (last === -1) return { roles: matching, end: 'open' };
  return { roles: matching.slice(0, last + 1), end: 'terminating' };
}

/**
 * @returns whether the delegation covers the path: by one of its patterns, or by a prefix of the path's SHA-256 in hex (hashed bins)
 */
export function matchesPath(role: DelegatedRole, path: string): boolean {
  if (role.paths !== undefined) return role.paths.some((pattern) => matchesPattern(pattern, path));
  const hex = createHash('sha256').update(path, 'utf8').digest('hex');
  return (role.path_hash_prefixes ?? []).some((prefix) => hex.startsWith(prefix));
}

function beyond(target: string, expected: number, of: string): WritError {
  const text = `${target}: more than ${expected} ${of} would have to be asked`;
  return new WritError('DELEGATION_LIMIT', text, { facts: { target, expected, of } });
}
