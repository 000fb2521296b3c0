// Plans the change of a delegation: the delegated roles, their keys and names, and the role that lists each release
// afterwards. Decides over the repository state; delegation-rules judges whether the change is allowed. Signs and writes
// nothing.
import { isDeepStrictEqual } from 'node:util';
import { WritError } from '../../core/errors.js';
import { delegationAuthority, isVouched } from '../../core/tuf/metadata-checks.js';
import { matchesPath } from '../../core/tuf/target-search.js';
import type {
  DelegatedRole,
  Delegations,
  MetadataKey,
  ParsedFile,
  TargetFile,
} from '../../core/tuf/tuf-metadata.js';
import type { PublicKey } from '../keys/public-key.js';
import { shortKeyId, signersOf } from '../keys/signer-names.js';
import { delegatedRolesOf } from '../repository/delegated-files.js';
import {
  type HandOver,
  handedOverBy,
  type ListedRelease,
  type MarkedRelease,
  markListedReleases,
  publishedTargetsOf,
  readListedReleases,
  targetsListedBy,
} from '../repository/listing.js';
import type { RepositoryState } from '../repository/repository-state.js';
import { lastSeenVersion } from '../repository/version-restarts.js';
import {
  findNewestFile,
  isAuthorisedFile,
  readDelegatedValidityMs,
  requireKnownEntries,
} from '../signing/sign-role.js';
import {
  type DelegationRequest,
  requireHandOver,
  requireKeys,
  requireName,
  requirePaths,
} from './delegation-rules.js';

export interface DelegationPlan {
  readonly role: string;
  readonly kind: 'created' | 'changed' | 'removed';
  readonly before?: DelegatedRole | undefined;
  readonly after?: DelegatedRole | undefined;
  /** Paths of releases that another role lists after the change. */
  readonly moved: readonly string[];
  /** The part of `moved` that goes from the targets to the role. */
  readonly taken: readonly string[];
  /** Releases that the new targets hand over to the role: hosts see each once the role has signed it. */
  readonly handedOver: readonly MarkedRelease[];
  /** Releases that the new targets sign in place of the role: hosts see these with the next snapshot. */
  readonly returned: readonly MarkedRelease[];
  /** Waiting releases of the role that no snapshot on disk lists, and that are not handed over. */
  readonly leftOut: readonly ListedRelease[];
  /** The role lists nothing until its keys have signed. The targets keep what it listed or was handed over until then. */
  readonly needsSignature: boolean;
  /** Names of the role's keys, by key id. */
  readonly names: ReadonlyMap<string, string>;
  /** The top-level targets to sign. */
  readonly targets: Readonly<Record<string, TargetFile>>;
  readonly delegations: Delegations;
  /** Members of `writ` in the signed part of the targets. */
  readonly writMembers: { readonly handedOver: object; readonly livesMs: object; readonly signers: object };
}

/**
 * @returns undefined when nothing would change; the removal of a role always has a plan
 * @throws WritError DELEGATION_REFUSED, ROLE_UNKNOWN, USAGE; REPOSITORY_INVALID where the listed file of the role is lost
 */
export function planDelegation(
  state: RepositoryState,
  request: DelegationRequest,
): DelegationPlan | undefined {
  const { role, change } = request;
  const before = delegatedRolesOf(state.targets).find(({ name }) => name === role);
  if (change === undefined) {
    if (before === undefined) throw unknownRole(state, role);
    return planChange(state, request, { before, after: undefined });
  }
  requireName(state, role);
  const after = roleAfter(role, before, change);
  requireKeys(state, after, request);
  requirePaths(state, after);
  const plan = planChange(state, request, { before, after });
  return isSame(state, plan, request) ? undefined : plan;
}

function unknownRole({ targets }: RepositoryState, role: string): WritError {
  const known = delegatedRolesOf(targets).map(({ name }) => name);
  return new WritError('ROLE_UNKNOWN', `the targets do not delegate to ${role}`, {
    facts: { role, known: known.slice(0, 50) },
  });
}

type Change = NonNullable<DelegationRequest['change']>;

function roleAfter(role: string, before: DelegatedRole | undefined, change: Change): DelegatedRole {
  const keyids = change.keys?.map((key) => key.keyId) ?? before?.keyids ?? [];
  const paths = change.paths ?? before?.paths ?? [];
  const threshold = change.threshold ?? before?.threshold ?? 1;
  return {
    name: role,
    keyids: [...new Set(keyids)],
    threshold,
    paths: [...new Set(paths)],
    terminating: true,
  };
}

/** @param after undefined where the delegation ends; the targets then list the releases of the role again */
function planChange(
  state: RepositoryState,
  request: DelegationRequest,
  { before, after }: Pick<DelegationPlan, 'before' | 'after'>,
): DelegationPlan {
  const { targets } = state;
  const { role } = request;
  if (before !== undefined) requireKnownEntries(state, role);
  const { keys: added = [], validityMs } = request.change ?? {};
  const delegations = delegationsWith(targets, { role, after, added });
  const next = { ...targets, signed: { ...targets.signed, delegations } };
  const listed = targetsListedBy(state, role);
  const published = publishedTargetsOf(state, role);
  const kept = isTrustedAfter(state, next, request) ? listed : published;
  const isOwn = (path: string): boolean => after !== undefined && matchesPath(after, path);
  // The targets publish a returned release without the team. A waiting one is therefore returned only on request.
  const returned = request.shouldIncludeWaiting === true ? listed : published;
  const own = { ...pick(kept, isOwn), ...pick(returned, (path) => !isOwn(path)) };
  const taken = pathsOf(targets.signed.targets).filter(isOwn);
  const left = pathsOf(own).filter((path) => !isOwn(path));
  requireHandOver(request, { taken, left, role });
  const current = findNewestFile(state, role);
  const { meta } = state.live.snapshot.signed;
  const vouched = current !== undefined && isAuthorisedFile(next, role, current);
  const needsSignature = after !== undefined && (!vouched || taken.length + left.length > 0);
  const handOver: HandOver = {
    after: Math.max(current?.signed.version ?? 0, lastSeenVersion({ meta, restarts: state.restarts }, role)),
    targets: { ...pick(own, isOwn), ...pick(targets.signed.targets, (path) => taken.includes(path)) },
  };
  const valuesAfter = <T>(values: Readonly<Record<string, T>>, value: T | undefined): object => {
    const { [role]: _gone, ...others } = values;
    if (after === undefined) return others;
    return value === undefined ? values : { ...values, [role]: value };
  };
  return {
    role,
    kind: after === undefined ? 'removed' : before === undefined ? 'created' : 'changed',
    before,
    after,
    moved: [...taken, ...left],
    taken,
    handedOver: markListedReleases(state, role, needsSignature ? handOver.targets : {}),
    returned: markListedReleases(
      state,
      'targets',
      pick(own, (path) => left.includes(path)),
    ),
    leftOut: readListedReleases(
      role,
      pick(listed, (path) => !isDeepStrictEqual(listed[path], own[path])),
    ),
    needsSignature,
    names: namesOf(targets, after ?? before, added),
    targets: {
      ...pick(targets.signed.targets, (path) => !taken.includes(path)),
      ...pick(own, (path) => left.includes(path)),
    },
    delegations,
    writMembers: {
      handedOver: valuesAfter(handedOverBy(targets), needsSignature ? handOver : undefined),
      livesMs: valuesAfter(readDelegatedValidityMs(targets), validityMs),
      signers: signersAfter(targets, delegations, added),
    },
  };
}

type Targets = ParsedFile<'targets'>;

/**
 * @param next the targets with the new delegations
 * @returns true if the newest file of the role may be handed over: its keys are still trusted, or the operator asked for it
 */
function isTrustedAfter(
  state: RepositoryState,
  next: Targets,
  { role, shouldIncludeWaiting }: DelegationRequest,
): boolean {
  const file = findNewestFile(state, role);
  const after = delegatedRolesOf(next).find(({ name }) => name === role);
  if (shouldIncludeWaiting === true) return true;
  return file !== undefined && after !== undefined && isVouched(file, delegationAuthority(next, after));
}

interface RoleAfter {
  readonly role: string;
  readonly after: DelegatedRole | undefined;
  readonly added: readonly PublicKey[];
}

/** A role keeps its position in the search order; a new one is the last. */
function delegationsWith(targets: Targets, { role, after, added }: RoleAfter): Delegations {
  const before = delegatedRolesOf(targets);
  const isNew = !before.some(({ name }) => name === role);
  const changed = before.flatMap((one) => (one.name === role ? (after ?? []) : one));
  const roles = isNew && after !== undefined ? [...changed, after] : changed;
  return { keys: keysOf(targets, roles, added), roles };
}

/** The keys that a role still uses, without those of removed roles. */
function keysOf(
  targets: Targets,
  roles: readonly DelegatedRole[],
  added: readonly PublicKey[],
): Record<string, MetadataKey> {
  const used = new Set(roles.flatMap(({ keyids }) => keyids));
  const known = Object.entries(targets.signed.delegations?.keys ?? {});
  const all = [...known, ...added.map(({ key, keyId }) => [keyId, key] as const)];
  return Object.fromEntries(all.filter(([id]) => used.has(id)));
}

/** @returns names by key id: the names in the targets, replaced by new names */
function namesWith({ signed }: Targets, added: readonly PublicKey[]): ReadonlyMap<string, string> {
  return new Map([...signersOf(signed), ...added.map(({ keyId, name }) => [keyId, name] as const)]);
}

function signersAfter(targets: Targets, { keys }: Delegations, added: readonly PublicKey[]) {
  return Object.fromEntries([...namesWith(targets, added)].filter(([id]) => Object.hasOwn(keys, id)));
}

function namesOf(targets: Targets, role: DelegatedRole | undefined, added: readonly PublicKey[]) {
  const names = namesWith(targets, added);
  return new Map((role?.keyids ?? []).map((id) => [id, names.get(id) ?? shortKeyId(id)]));
}

function isSame({ targets }: RepositoryState, plan: DelegationPlan, { change }: DelegationRequest): boolean {
  const { before, after, moved } = plan;
  const currentMs = readDelegatedValidityMs(targets)[plan.role];
  if (before === undefined || after === undefined || moved.length > 0) return false;
  const hasSameValidity = change?.validityMs === undefined || change.validityMs === currentMs;
  return hasSameValidity && JSON.stringify(normal(before)) === JSON.stringify(normal(after));
}

function normal({ keyids, paths = [], threshold, terminating }: DelegatedRole): object {
  return { keyids: [...keyids].sort(), paths: [...paths].sort(), threshold, terminating };
}

function pathsOf(targets: Readonly<Record<string, TargetFile>>): string[] {
  return Object.keys(targets).sort();
}

function pick(
  targets: Readonly<Record<string, TargetFile>>,
  wanted: (path: string) => boolean,
): Record<string, TargetFile> {
  return Object.fromEntries(Object.entries(targets).filter(([path]) => wanted(path)));
}
