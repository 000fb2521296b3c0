// Runs the search for a target, either with requests, which fetch only the delegated roles that the search needs, or with the stored
// files only. src/core/tuf has the rules.
import { orUndefined, WritError } from '../core/errors.js';
import type { MetadataLimits } from '../core/limits.js';
import { targetPath } from '../core/names.js';
import { searchTarget, visitRoles, type WantedRole } from '../core/tuf/target-search.js';
import {
  delegatedMetaOf,
  keptDelegated,
  requireFreshDelegated,
  trustDelegated,
  withDelegated,
} from '../core/tuf/trusted-delegations.js';
import { requireTrusted, type TrustedSet } from '../core/tuf/trusted-set.js';
import type { DelegatedRole, ParsedFile } from '../core/tuf/tuf-metadata.js';
import type { Clock } from '../platform/time/clock.js';
import { fetchListed, type Requester } from './metadata-requests.js';
import { describeFound, type FoundFile, readSignedTarget, type SignedTarget } from './signed-target.js';

/** Loads the file of a delegated role; throws if it cannot be trusted. */
export type LoadRole = (wanted: WantedRole) => Promise<ParsedFile<'targets'>>;

/**
 * @returns the entry of a path and the roles that signed it; undefined if no role lists it
 * @throws WritError DELEGATION_LIMIT, and exceptions of `load`
 */
export async function findTarget(
  set: TrustedSet,
  path: string,
  load: LoadRole,
): Promise<FoundFile | undefined> {
  const search = searchTarget(requireTrusted(set, 'targets'), path);
  let step = search.next();
  while (step.done !== true) step = search.next(await load(step.value));
  return step.value && describeFound(set, step.value);
}

/** A delegated role as its delegator in the search lists it. */
interface ListedRole {
  readonly role: string;
  readonly delegator: string;
  readonly version: number;
  /** Epoch milliseconds. */
  readonly expiresAtMs: number;
  readonly keyIds: readonly string[];
  readonly threshold: number;
}

export interface TargetList {
  /** The results of a search for each path, sorted by path. Entries of a role without authority for their path are left out. */
  readonly files: readonly FoundFile[];
  /** In the order of the search. */
  readonly delegated: readonly ListedRole[];
}

/**
 * Time for all searches of a list, because each path may be compared with each pattern, and there may be a hundred thousand of each.
 */
const maxSearchesMs = 60_000;

/**
 * Lists all targets of the repository, including those of all delegated roles.
 * @throws WritError DELEGATION_LIMIT, also if the searches take more than a minute; and exceptions of `load`
 */
export async function listTargets(
  current: () => TrustedSet,
  load: LoadRole,
  clock: Pick<Clock, 'monotonicMs'>,
): Promise<TargetList> {
  const targets = requireTrusted(current(), 'targets');
  const delegated: ListedRole[] = [];
  // Caches files, so that a file with ten thousand paths is verified once and not for each path.
  const loaded = new Map<DelegatedRole, ParsedFile<'targets'>>();
  const paths = new Set(Object.keys(targets.signed.targets));
  const roles = visitRoles(targets);
  let step = roles.next();
  while (step.done !== true) {
    const { delegator, role } = step.value;
    const file = await load(step.value);
    loaded.set(role, file);
    const { expiresAtMs, signed } = file;
    const { name, threshold, keyids: keyIds } = role;
    const { version } = signed;
    delegated.push({ role: name, delegator: delegator.name, version, expiresAtMs, keyIds, threshold });
    for (const path of Object.keys(signed.targets)) paths.add(path);
    step = roles.next(file);
  }
  const files: FoundFile[] = [];
  const endMs = clock.monotonicMs() + maxSearchesMs;
  for (const path of [...paths].sort()) {
    if (clock.monotonicMs() > endMs) throw tooLong(path, paths.size);
    const found = await findTarget(
      current(),
      path,
      async (wanted) => loaded.get(wanted.role) ?? load(wanted),
    );
    if (found !== undefined) files.push(found);
  }
  return { files, delegated };
}

function tooLong(target: string, paths: number): WritError {
  const text = `the list of all targets: the searches for its ${paths} paths take more than ${maxSearchesMs} ms`;
  return new WritError('DELEGATION_LIMIT', text, { facts: { target, expected: maxSearchesMs, of: 'ms' } });
}

/**
 * Adds the stored delegated roles that the snapshot still lists, for a status. It ignores the roles over the bound of a listing,
 * because a host of a repository with many hashed bins would otherwise have no status.
 * @throws WritError METADATA_MIX
 */
export function recallRoles(set: TrustedSet, stored: StoredRole): TrustedSet {
  if (set.targets === undefined || set.snapshot === undefined) return set;
  let recalled = set;
  const roles = visitRoles(set.targets);
  for (let step = roles.next(); step.done !== true; ) {
    const { role } = step.value;
    const isListed = Object.hasOwn(set.snapshot.signed.meta, `${role.name}.json`);
    const file = isListed ? keptDelegated(set, step.value, () => stored(role.name)) : undefined;
    if (file !== undefined) recalled = withDelegated(recalled, file);
    step = orUndefined(() => roles.next(file)) ?? { done: true, value: undefined };
  }
  return recalled;
}

/**
 * Finds the head of a channel in the stored files. Expiry is ignored, so that the result may be shown and must not be activated.
 * @param stored returns the stored bytes of a role
 * @returns undefined also if a role in the search is not stored as the snapshot lists it
 * @throws WritError TARGET_MALFORMED, DELEGATION_LIMIT, METADATA_MIX
 */
export function knownTarget(
  set: TrustedSet,
  name: { readonly bundle: string; readonly channel: string },
  stored: StoredRole,
): SignedTarget | undefined {
  if (set.targets === undefined || set.snapshot === undefined) return undefined;
  const search = searchTarget(set.targets, targetPath(name.bundle, name.channel));
  let step = search.next();
  while (step.done !== true) {
    const { role } = step.value;
    const file = keptDelegated(set, step.value, () => stored(role.name));
    if (file === undefined) return undefined;
    step = search.next(file);
  }
  return step.value && readSignedTarget(describeFound(set, step.value), name);
}

type StoredRole = (name: string) => Uint8Array | undefined;

export interface DelegatedContext {
  readonly limits: MetadataLimits;
  /** The time of the last refresh: one update uses one fixed time (5.1). */
  readonly nowMs: number;
  stored(name: string): Uint8Array | undefined;
  current(): TrustedSet;
  /** Called with each set that has a new delegated role. */
  accept(set: TrustedSet): void;
}

/**
 * Reads a delegated role without a request: the stored file, if the snapshot still lists it and this delegator
 * authorizes its signers. It must not have expired: an expired role freezes its own bundles at each use.
 * @param wanted the role and its delegator
 * @returns undefined if it must be fetched
 * @throws WritError METADATA_EXPIRED, METADATA_MIX
 */
export function recallDelegated(
  context: DelegatedContext,
  wanted: WantedRole,
): ParsedFile<'targets'> | undefined {
  const set = context.current();
  const { name } = wanted.role;
  const kept = keptDelegated(set, wanted, () => context.stored(name));
  if (kept === undefined) return undefined;
  requireFreshDelegated(set, kept, context.nowMs);
  if (set.delegated?.get(name) !== kept) context.accept(withDelegated(set, kept));
  return kept;
}

/** @throws WritError METADATA_MIX, METADATA_MISSING, METADATA_MALFORMED, METADATA_EXPIRED, SIGNATURE_*, transport */
export async function fetchDelegated(
  context: DelegatedContext,
  { delegator, role }: WantedRole,
  requester: Requester,
): Promise<ParsedFile<'targets'>> {
  const set = context.current();
  const meta = delegatedMetaOf(set, role);
  const maxBytes = context.limits.maxTargetsBytes;
  const file = await fetchListed({ set, role: role.name, meta, maxBytes }, requester, (bytes) =>
    trustDelegated(set, delegator, role, bytes, context.nowMs),
  );
  context.accept(withDelegated(set, file));
  return file;
}
