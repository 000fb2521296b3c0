// Walks the search for a target with what a client has: asynchronously, fetching the delegated roles that the
// search asks for, one at a time and no other; or with what is stored alone. Owns no rule of trust.
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

/** How a delegated role is had; it throws for one that cannot be trusted. */
export type LoadRole = (wanted: WantedRole) => Promise<ParsedFile<'targets'>>;

/**
 * @returns the entry of a path and who vouches for it; undefined if nobody lists it
 * @throws WritError DELEGATION_LIMIT, and what `load` throws
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

/** A delegated role, as the delegator on the way to it sees it. */
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
  /** What a search for its path finds, by path; entries of a role that may not speak for them are left out. */
  readonly files: readonly FoundFile[];
  /** In the order of the search. */
  readonly delegated: readonly ListedRole[];
}

/** For the searches of a list: each of its paths may be held to each pattern, and there may be a hundred thousand of either. */
const maxSearchesMs = 60_000;

/**
 * Everything that the repository offers, every delegated role included.
 * @throws WritError DELEGATION_LIMIT, also where the searches take more than a minute; what `load` throws
 */
export async function listTargets(
  current: () => TrustedSet,
  load: LoadRole,
  clock: Pick<Clock, 'monotonicMs'>,
): Promise<TargetList> {
  const targets = requireTrusted(current(), 'targets');
  const delegated: ListedRole[] = [];
  // A file of ten thousand paths is read and verified once, and not for each of them.
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
 * Takes up those delegated roles that are stored and still what the snapshot names, for a look at them: as many as a
 * listing visits, since a host of a repository of many bins would otherwise have no status.
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
 * The head of a channel, with what is stored alone and without regard to expiry: for a look, never for an activation.
 * @param stored the bytes that the host keeps for a role
 * @returns undefined also when a role on the way is not stored, or not as the snapshot names it
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
  /** That of the refresh before: one update is judged at one time (5.1). */
  readonly nowMs: number;
  stored(name: string): Uint8Array | undefined;
  current(): TrustedSet;
  /** Called with every set that has a new delegated role in it. */
  accept(set: TrustedSet): void;
}

/**
 * Has a delegated role at hand without a request: the kept file, if the snapshot still names it and this
 * delegator vouches for it. It must be fresh: a role that expires freezes its own bundles, at every look.
 * @returns undefined where it has to be fetched
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
