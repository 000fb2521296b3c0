// The search for a target through delegations (specification 5.6.7): depth first, in the order of appearance,
// each role once. Pure: it says which role it needs next and is given that role's file, already trusted on the
// way that led to it. Owns who may speak for a path; never what a file must prove to be trusted.
import { createHash } from 'node:crypto';
import { WritError } from '../errors.js';
import { matchesPattern } from './path-pattern.js';
import type { DelegatedRole, ParsedFile, TargetFile } from './tuf-metadata.js';

/** What the search wants next: the file of `role`, judged by the keys of `delegator`. */
export interface WantedRole {
  readonly delegator: ParsedFile<'targets'>;
  readonly role: DelegatedRole;
}

export interface FoundTarget {
  readonly path: string;
  readonly file: TargetFile;
  /** The files that vouch for it, from the top-level targets to the one that lists it. */
  readonly chain: readonly ParsedFile<'targets'>[];
}

/** Delegated roles that one search may visit; the number that all clients use. */
export const maxVisitedRoles = 32;
/**
 * And the bytes of them all but the greatest, which may have as many as targets: it takes ten times that when it is parsed,
 * and two of them beside all else would be too many for an agent of 256 MB.
 */
export const maxOtherBytes = 2_000_000;

/**
 * Searches one path. Each value asked for is answered by `next(file)`; a role that cannot be trusted has to end
 * the search with its error: going on behind it would let whoever withholds it choose who answers.
 * @param targets the trusted top-level targets
 * @returns the first entry in the order of the search; undefined if no role lists the path
 * @throws WritError DELEGATION_LIMIT when a further role would have to be visited
 */
export function* searchTarget(
  targets: ParsedFile<'targets'>,
  path: string,
): Generator<WantedRole, FoundTarget | undefined, ParsedFile<'targets'>> {
  const { visit, weigh } = boundsOf(path, { roles: maxVisitedRoles, otherBytes: maxOtherBytes });
  // A stack instead of recursion: the depth is what others wrote.
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
    // A terminating delegation has the last word about its paths: whoever stands behind it is not asked.
    if (end === 'terminating') waiting.length = 0;
    for (const role of roles.toReversed()) waiting.push({ chain, wanted: { delegator: file, role } });
  }
  return undefined;
}

/** What one visit of roles may cost, whoever wrote them. */
function boundsOf(target: string, max: { readonly roles: number; readonly otherBytes: number }) {
  const visited = new Set<string>();
  const others = countOthers();
  return {
    /** Visited anywhere, not on this branch alone: cycles end, and a diamond is asked once. */
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

/** @returns a count that takes one file after the other, and gives the bytes of all but the greatest so far */
export function countOthers(): (file: ParsedFile<'targets'>) => number {
  let [all, greatest] = [0, 0];
  return ({ bytes }) => {
    all += bytes.length;
    greatest = Math.max(greatest, bytes.length);
    return all - greatest;
  };
}

/** Delegated roles that one listing visits: more than a search does, as hashed bins are many. */
export const maxListedRoles = 1024;
export const maxListedBytes = 50_000_000;

/**
 * Visits every role that the targets lead to, each once, as `yield` gives its file. For a list of what there may
 * be: whether a role may really speak for a path that it lists, only a search for that path can tell.
 * A role that is answered by undefined is passed over, with what only it leads to.
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

/** Those roles of a file that speak for the path, as far as the first terminating one. */
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
 * @returns true if the delegation covers the path: by one of its patterns, or by the beginning of the path's
 *   SHA-256 in hex (hashed bins)
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
